"""One matrix product on 64 GPUs in three ways, and the grid that touches the least.

The product stays one op; what is said at its node, and at the nodes of its operands, decides which
device has which part and how parts travel (docs/rewrites.md).
"""

import plancast as pc

SIZE = 16384


def product() -> pc.Model:
    return pc.Model.program(
        "product",
        dims={"i": SIZE, "j": SIZE, "k": SIZE},
        given={"B": ["i", "k"], "C": ["k", "j"]},
        steps=["A[i,j] += B[i,k] * C[k,j]"],
    )


def on_square(*turning: str) -> pc.Strategy:
    """8 x 8 devices: parts of B and C come along k, by broadcasts or from neighbours."""
    tree = pc.Strategy.parse("dp=8,tp=8,mb=1")
    tree["product.B"].split(dp=["i"], tp=["k"])
    tree["product.C"].split(dp=["k"], tp=["j"])
    rotate = {"k": list(turning)} if turning else None
    tree["product.A"].split(dp=["i"], tp=["j"]).communicate(B="k", C="k", rotate=rotate)
    return tree


def main() -> None:
    machine = pc.Machine.preset("dgx-h100", hosts=8)
    plans = {
        "SUMMA": on_square(),
        "PUMMA": on_square("dp"),
        "Cannon": on_square("dp", "tp"),
    }
    for name, strategy in plans.items():
        forecast = pc.predict(product(), machine, strategy, cuda_graphs=True)
        parts = forecast.breakdown()
        print(
            f"{name:8} {forecast.iteration_time * 1e3:7.2f} ms"
            f"  product {parts['compute'] * 1e3:6.2f} ms"
        )
    best = pc.product_grids(m=SIZE, n=SIZE, k=SIZE, ranks=64)[0]
    print(f"least surface: {best.rows} x {best.columns} x {best.layers}")


if __name__ == "__main__":
    main()
