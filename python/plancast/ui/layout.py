"""The controls and places of the page."""

from __future__ import annotations

from typing import Any

from plancast.arguments import DTYPES
from plancast.planning import profiles
from plancast.ui.choices import SLIDERS, Choice, Desk

ABOUT = {
    "tp": "tensor parallel",
    "pp": "pipeline stages",
    "cp": "context parallel",
    "ep": "expert parallel",
    "mb": "micro-batch",
    "vpp": "chunks a stage",
}
ZERO = ("", "0", "1", "2", "3")
RECOMPUTE = ("", "none", "selective", "full")
CONFIG: Any = {"displaylogo": False, "displayModeBar": False}


def page(desk: Desk, first: Choice) -> Any:
    """The whole page."""
    from dash import dcc, html

    return html.Main(
        [
            dcc.Store(id="theme", data="light"),
            dcc.Store(id="steps"),
            dcc.Store(id="choice"),
            dcc.Store(id="pins", data=[]),
            html.Header([html.H1("Plancast"), html.Span("", id="heading", className="plan")]),
            html.Div(
                [
                    html.Div(_controls(desk, first), className="controls"),
                    html.Div(_answer(), className="answer"),
                ],
                className="desk",
            ),
        ]
    )


def _controls(desk: Desk, first: Choice) -> list[Any]:
    from dash import dcc, html

    def labelled(label: str, control: Any) -> Any:
        return html.Label([html.Span(label), control])

    def menu(key: str, options: Any, value: str) -> Any:
        return dcc.Dropdown(options, value, id=key, clearable=False, searchable=True)

    def number(key: str, value: int | None, hint: str = "") -> Any:
        return dcc.Input(
            id=key, type="number", min=1, step=1, value=value, placeholder=hint, debounce=0.4
        )

    sliders = [
        html.Div(
            [
                html.Div([html.Span(f"{key}, {ABOUT[key]}"), html.B("", id=f"said-{key}")]),
                dcc.Slider(
                    id=key, min=0, max=1, step=1, value=0, marks=None, updatemode="drag",
                    allow_direct_input=False, dots=True,
                ),
            ],
            id=f"around-{key}",
            className="slider",
        )
        for key in SLIDERS
    ]  # fmt: skip
    return [
        labelled("model", menu("model", desk.model_names(), first.model)),
        labelled("machine", menu("machine", desk.machine_names(), first.machine)),
        html.Div(
            [
                labelled("hosts", number("hosts", first.hosts)),
                labelled("batch", number("batch", first.batch)),
                labelled("sequence", number("seq", first.seq, "the model's")),
            ],
            className="three",
        ),
        *sliders,
        html.P("", id="devices", className="note"),
        html.Div(
            [
                labelled("ZeRO", menu("zero", _named(ZERO), first.zero)),
                labelled("recompute", menu("recompute", _named(RECOMPUTE), first.recompute)),
            ],
            className="two",
        ),
        dcc.Checklist(
            [{"label": " sequence parallel", "value": "sp"}],
            ["sp"] if first.sp else [],
            id="sp",
        ),
        labelled(
            "more of the plan",
            dcc.Input(
                id="more", type="text", value=first.more, placeholder="schedule=zbh1,attn=flash",
                debounce=0.4,
            ),
        ),
        html.Div(
            [
                labelled("type", menu("dtype", list(DTYPES), first.dtype)),
                labelled("software", menu("profile", profiles(), first.profile)),
            ],
            className="two",
        ),
    ]  # fmt: skip


def _named(values: tuple[str, ...]) -> list[dict[str, str]]:
    return [{"label": value or "as the profile", "value": value} for value in values]


def _answer() -> list[Any]:
    from dash import dcc, html

    def chart(key: str) -> Any:
        return dcc.Graph(id=key, config=CONFIG, className="chart")

    return [
        html.Div(id="error", className="warning", hidden=True),
        html.Div(id="cards", className="cards"),
        html.Div(id="warnings"),
        html.Div(
            [
                html.Button("pin this plan", id="pin", n_clicks=0),
                html.Button("forget pins", id="forget", n_clicks=0),
                html.Button("report", id="report", n_clicks=0),
                html.Button("pins as CSV", id="csv", n_clicks=0),
                html.Button("pins as JSON", id="json", n_clicks=0),
                dcc.Download(id="saved"),
            ],
            className="buttons",
        ),
        html.Div(id="pinned"),
        html.H2("Where the time goes"),
        chart("times"),
        html.H2("The pipeline over time"),
        chart("pipeline"),
        html.H2("Memory"),
        chart("memory"),
        html.H2("To repeat it"),
        html.Pre("", id="command"),
    ]
