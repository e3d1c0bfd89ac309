"""`candor truth`: a tiny network through the whole command, and what is refused."""

import json
from pathlib import Path

import pytest
from pictures import without_paint
from tiny import SIZES

from candor.research.truth import cells

pytestmark = pytest.mark.usefixtures("in_this_process")
TINY = [f"{key}={value}" for key, value in SIZES.items()]
TINY += ["data.sensors=6", "data.steps=200", "history=12", "horizon=4", "epochs=1", "epoch_windows=16", "batch=16"]
ONE = ("truth", "--model", "candor", "--datasets", "synthetic-road", "--seeds", "1", "--out", "asked", *TINY)


def test_the_command_trains_asks_writes_and_is_done_the_second_time(candor, monkeypatch: pytest.MonkeyPatch) -> None:
    with without_paint(but=("truth",)):
        asked = candor(*ONE)
    assert asked.code == 0, asked.err
    for words in ("synthetic-road: explanations", "shock gates", "largest residual", "random numbers", "goal 0.9"):
        assert words in asked.out
    for ending in ("json", "md", "csv", "png", "svg"):
        assert Path(f"asked/truth.{ending}").stat().st_size > 500
    content = json.loads(Path("asked/truth.json").read_text())
    assert content["command"].startswith("candor truth --model candor --seeds 1 --datasets synthetic-road hidden=8")
    assert str(Path.cwd()) not in Path("asked/truth.json").read_text()

    monkeypatch.setattr(cells, "train_model", lambda *_, **__: pytest.fail("it was trained again"))
    with without_paint():
        again = candor(*ONE, "--json")
    assert again.code == 0, again.err
    assert json.loads(again.out)["rows"] == content["rows"]
    assert candor("runs", "list", "asked").code == 0


def test_the_account_is_scored_without_training(candor) -> None:
    asked = ("truth", "--datasets", "synthetic-river", "--seeds", "11", "--out", "account")
    with without_paint(but=("truth",)):
        answered = candor(*asked, "data.sensors=6", "data.steps=1500")
    assert answered.code == 0, answered.err
    for words in ("a star is the account", "evidence of a jump", "rise of storage", "goal 0.85"):
        assert words in answered.out
    content = json.loads(Path("account/truth.json").read_text())
    assert {row["question"] for row in content["rows"]} >= {"storage", "arrivals", "shocks", "delays"}
    again = candor(*asked, "data.sensors=6", "data.steps=1500", "--json")
    assert json.loads(again.out)["rows"] == content["rows"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--datasets", "metr-la"), "truth about 'metr-la' is not known"),
        (("--datasets", " ,"), "no dataset is named"),
        (("--seeds", "one"), "are not seeds"),
        (("--model", "oracle"), "no explanations of 'oracle'"),
        (("--budget-minutes", "3"), "the account is not trained"),
        (("epochs",), "is not a setting"),
        (
            ("--model", "candor", "--out", "x", "decomposition=false", "data.steps=200", "data.sensors=4"),
            "has no decomposition",
        ),
        (
            ("--model", "candor", "--out", "x", "wings=2", "data.steps=400", "data.sensors=4"),
            "no setting called 'wings'",
        ),
    ],
)
def test_wrong_input_is_answered_in_plain_words(candor, arguments: tuple[str, ...], words: str) -> None:
    refused = candor("truth", "--datasets", "synthetic-road", *arguments)
    assert refused.code == 2
    assert words in " ".join(refused.err.split())
