"""``regimix synth``: data whose truth is known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regimix.atomic import write_bytes
from regimix.cli.console import Voice
from regimix.cli.options import Quiet, Seed, each, of_command, real, whole
from regimix.cli.place import TABLE, TRUTH, check_outputs
from regimix.words import count

if TYPE_CHECKING:
    from regimix.synth import MLRCData


def synth(
    out: Annotated[
        Path, typer.Argument(metavar="OUT", help="Where the rows go: .csv, .tsv, .parquet, ...")
    ],
    rows: Annotated[int, of_command("N", "Rows.", "--rows", "-n", parser=whole(1))] = 1000,
    features: Annotated[
        int, of_command("D", "Columns x0, x1, ...", "--features", "-d", parser=whole(1))
    ] = 5,
    components: Annotated[
        int, of_command("M", "Regimes.", "--components", "-m", parser=whole(1))
    ] = 2,
    shares: Annotated[
        str | None, of_command("A,B,...", "Their relative sizes.", show_default="equal")
    ] = None,
    corruption: Annotated[
        float, of_command("SHARE", "Share of the rows that are outliers.", parser=real)
    ] = 0.0,
    corruption_kind: Annotated[
        str,
        of_command(
            ("gross", "same-scale", "adversarial"),
            "Errors added, responses redrawn, or one regime of their own for all outliers.",
        ),
    ] = "gross",
    noise: Annotated[
        str, of_command("SD", "Standard deviation of the noise, for all or each: A,B.")
    ] = "0.1",
    separation: Annotated[
        float | None,
        of_command(
            "Q",
            "Smallest distance of two regimes over the largest length.",
            parser=real,
            show_default="drawn",
        ),
    ] = None,
    intercepts: Annotated[
        str | None, of_command("A,B,...", "Intercepts of the regimes.", show_default="none")
    ] = None,
    seed: Seed = 0,
    truth: Annotated[
        Path | None, of_command("FILE.json", "Where the truth goes.", show_default="OUT.truth.json")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Make data with known regimes and outliers, and write down the truth."""
    answers = truth if truth is not None else out.with_name(f"{out.name}.truth.json")
    check_outputs([("OUT", out, TABLE), ("--truth", answers, TRUTH)])
    from regimix.synth import make_mlrc
    from regimix.tables import write_table

    how: dict[str, Any] = {
        "weights": each("--shares", shares, components),
        "corruption": corruption,
        "corruption_kind": corruption_kind,
        "noise": each("--noise", noise, components) or 0.0,
        "separation": separation,
        "intercepts": each("--intercepts", intercepts, components),
        "random_state": seed,
    }
    data = make_mlrc(rows, features, components, **how)
    columns: dict[str, Any] = {f"x{i}": column for i, column in enumerate(data.X.T)}
    write_table(out, {**columns, "y": data.y})
    write_bytes(answers, f"{json.dumps(_truth(data, seed), indent=1)}\n".encode())
    outliers = int(data.truth.corrupted.sum())
    voice = Voice(quiet=quiet)
    voice.answer(
        f"{out}: {count(rows, 'row')}, {count(features, 'feature')} x0, x1, ..., target y; "
        f"{count(outliers, 'outlier')}.",
        whole=True,
    )
    voice.answer(f"{answers}: the {components} regimes, and where each row belongs.", whole=True)


def _truth(data: MLRCData, seed: int) -> dict[str, Any]:
    """Put the truth into dictionaries and lists; labels are in the order of the rows."""
    truth = data.truth
    return {
        "seed": seed,
        "target": "y",
        "features": [f"x{i}" for i in range(data.X.shape[1])],
        "regimes": [
            {
                "label": j,
                "share": float(truth.clean_fraction[j]),
                "intercept": float(truth.intercept[j]),
                "coef": truth.coef[j].tolist(),
                "noise": float(truth.noise[j]),
            }
            for j in range(len(truth.coef))
        ],
        "corrupted": int(truth.corrupted.sum()),
        "wrong_coef": None if truth.wrong_coef is None else truth.wrong_coef.tolist(),
        "labels": truth.labels.tolist(),
    }
