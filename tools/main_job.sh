#!/bin/sh
# What `make run` shows: two published measurements forecast, then plans ranked and explained.
set -eu
cd "$(dirname "$0")/.."
mkdir -p out
plancast=.venv/bin/plancast

# Forecasts GPT-3 175B on 64 A100s and prints the published time beside it.
# Usage: gpt3 NAME STRATEGY PUBLISHED_SECONDS
gpt3() {
  name=$1 strategy=$2 published=$3
  set -- predict -m gpt3-175b -c dgx-a100-80g:8 -s "$strategy" --batch 64 --dtype fp16 \
    --profile megatron-2021
  echo "== GPT-3 175B on 8 DGX A100, $strategy"
  $plancast "$@" --trace "out/$name.json"
  $plancast "$@" --json > "out/$name.forecast.json"
  .venv/bin/python - "out/$name.forecast.json" "$published" <<'EOF'
import json
import sys

with open(sys.argv[1]) as file:
    forecast = json.load(file)["iteration_time_s"]
published = float(sys.argv[2])
print(f"forecast {forecast:.2f} s, published {published:.2f} s: {forecast / published - 1:+.1%}")
EOF
  echo "trace for ui.perfetto.dev: out/$name.json"
  echo
}

# Korthikanti et al. 2022, "Reducing Activation Recomputation in Large
# Transformer Models", Table 5.
gpt3 gpt3-175b 'tp=8,pp=8,vpp=3,mb=1,recompute=full,attn=unfused' 18.13
gpt3 gpt3-175b-selective 'tp=8,pp=8,vpp=3,mb=1,sp,recompute=selective,attn=unfused' 13.75

# The whole space, then why its best plan is the best.
llama() {
  command=$1
  shift
  $plancast "$command" -m examples/models/llama3-70b/config.json -c dgx-h100:16 --batch 256 \
    --seq 8192 "$@"
}
echo "== Llama 3 70B on 16 DGX H100: all plans, of which the ten fastest"
llama rank --report out/llama3-70b.ranking.html --out out/llama3-70b.plans.csv
# The best plan and the first one with another number of stages, one a line.
two=$(.venv/bin/python - out/llama3-70b.plans.csv <<'EOF'
import csv
import sys

with open(sys.argv[1], newline="") as file:
    plans = [row["strategy"] for row in csv.DictReader(file)]


def stages(plan):
    return dict(word.partition("=")[::2] for word in plan.split(",")).get("pp", "1")


print(plans[0])
print(next((plan for plan in plans if stages(plan) != stages(plans[0])), plans[-1]))
EOF
)
best=$(echo "$two" | sed -n 1p) other=$(echo "$two" | sed -n 2p)
echo
echo "== What the best of them hangs on"
llama explain -s "$best"
echo
echo "== Why it is not $other"
llama explain -s "$best" --versus "$other" --svg out/llama3-70b.why.svg \
  --report out/llama3-70b.why.html
echo
echo "pages: out/llama3-70b.ranking.html, out/llama3-70b.why.html"
echo "picture: out/llama3-70b.why.svg"
