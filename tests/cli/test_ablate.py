"""`candor ablate`: variants beside the full model, in one go or in several, and what is refused."""

import json
from pathlib import Path

import pandas as pd
import pytest
from tiny import SIZES

from candor.runs.run import load_run

TINY = [f"{key}={value}" for key, value in SIZES.items()] + [
    "epochs=1",
    "epoch_windows=16",
    "batch=16",
    "validation_windows=4",
    "first=2024-06-01",
]
pytestmark = pytest.mark.usefixtures("in_this_process")
WORDS = ("klamath-daily", *TINY, "--seeds", "0", "--out", "asked")


@pytest.mark.slow
def test_variants_tried_in_two_goes_share_the_full_model_and_all_results(candor) -> None:
    first = candor("ablate", *WORDS, "--variants", "without-physical")
    assert first.code == 0, first.err
    assert "w/o Physical" in first.out and "RMSE" in first.out and "MAPE" in first.out
    made = Path("asked/klamath-daily/candor/seed-0/run.json").stat().st_mtime_ns

    second = candor("ablate", *WORDS, "--variants", "mean-fusion,one-relation", "--json")
    assert second.code == 0, second.err
    assert Path("asked/klamath-daily/candor/seed-0/run.json").stat().st_mtime_ns == made
    content = json.loads(second.out)
    order = ["candor", "without-physical", "mean-fusion", "one-relation"]
    assert list(content["parameters"]) == order
    assert list(dict.fromkeys(change["variant"] for change in content["changes"])) == order[1:]
    results = pd.read_parquet("asked/results.parquet")
    assert results["model"].unique().tolist() == order
    for name in order:
        network = load_run(Path("asked/klamath-daily") / name / "seed-0").forecaster.trained().network
        size = sum(parameter.numel() for parameter in network.parameters())
        assert content["parameters"][name] == size
        assert f"{size:,}" in first.out or name in ("mean-fusion", "one-relation")
    table = pd.read_csv("asked/ablations.csv")
    assert set(table["variant"]) == {"w/o Physical", "avg Fusion", "One relation"}
    for row in table.itertuples():
        (own,) = [change for change in content["changes"] if change["relative"] == pytest.approx(row.relative_change)]
        assert (own["metric"], own["parameters"]) == (row.metric, row.parameters)
    overall = results[(results["step"] == 0) & (results["metric"] == "mae")].set_index("model")["value"]
    (change,) = [c for c in content["changes"] if (c["variant"], c["metric"]) == ("mean-fusion", "mae")]
    assert change["relative"] == pytest.approx(overall["mean-fusion"] / overall["candor"] - 1)
    assert all(Path(file).is_file() for file in content["files"])
    assert "without-physical" in Path("asked/tables-all.md").read_text()
    assert Path("asked/ablations.png").stat().st_size > 5_000


@pytest.mark.usefixtures("no_pictures")
def test_cells_with_other_settings_are_not_mixed_in(candor) -> None:
    assert candor("ablate", *WORDS, "--variants", "mean-fusion").code == 0
    other = [word if word != "pairs=4" else "pairs=2" for word in WORDS]
    other[other.index("--seeds") + 1] = "1"
    shown = candor("ablate", *other, "--variants", "without-physical", "--json")
    assert shown.code == 0, shown.err
    results = pd.read_parquet("asked/results.parquet")
    assert set(zip(results["model"], results["seed"], strict=True)) == {("candor", 1), ("without-physical", 1)}


@pytest.mark.usefixtures("unpainted")
def test_a_failed_variant_is_told_and_the_others_are_shown(candor) -> None:
    shown = candor("ablate", *WORDS, "--variants", "rain-added,mean-fusion", "--json")
    assert shown.code == 1
    content = json.loads(shown.out)
    assert "rain" in content["failed"]["klamath-daily/rain-added/seed-0"]
    assert {change["variant"] for change in content["changes"]} == {"mean-fusion"}
    assert Path("asked/ablations.csv").is_file() and not Path("asked/interventions.csv").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--variants", "without-wings"), "no variant called 'without-wings'"),
        (("--variants", ","), "no variant is named"),
        (("--seeds", "one"), "are not seeds"),
        (("--budget-minutes", "0"), "greater than 0"),
        (("--budget-minutes", "nan"), "finite"),
    ],
)
def test_wrong_input_is_answered_in_plain_words(candor, arguments: tuple[str, ...], words: str) -> None:
    refused = candor("ablate", "klamath-daily", *arguments)
    assert refused.code == 2
    assert words in " ".join(refused.err.split())
