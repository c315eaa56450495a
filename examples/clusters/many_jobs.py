"""Prints a table of jobs that arrive over weeks, for `plancast cluster`; equal for equal seeds.

python examples/clusters/many_jobs.py 5000 1 > jobs.csv
plancast cluster jobs.csv -c examples/clusters/two-thousand.yaml --uplinks 8 --queue backfill
"""

import random
import sys

SIZES = (1, 1, 2, 4, 8, 8, 8, 16, 16, 32, 32, 64, 128, 256, 512)
LARGE = 3  # of these are rare


def main() -> None:
    count, seed = int(sys.argv[1]), int(sys.argv[2])
    draw = random.Random(seed)
    print("name,arrival,gpus,compute,communicate,overlap,duration")
    arrival = 0.0
    for number in range(count):
        arrival += draw.expovariate(1 / 165)
        gpus = draw.choice(SIZES[: len(SIZES) - LARGE * (draw.random() < 0.9)])
        compute = draw.choice((0.2, 0.4, 0.8, 1.6, 3.2))
        sends, overlap = compute * draw.uniform(0.1, 0.6), draw.choice((0, 0.3))
        lasts = min(9e6, draw.lognormvariate(8.6, 1.3))
        print(f"j{number},{arrival:.3f},{gpus},{compute},{sends:.3f} s,{overlap},{lasts:.1f}")


main()
