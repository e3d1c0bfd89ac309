"""What the documentation shows is what happens, and what it names is there."""

import importlib
import inspect
import io
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import typer
import yaml
from fastapi.testclient import TestClient
from markdown.extensions.toc import slugify

import candor
from candor.cli import run
from candor.cli.app import app
from candor.data.catalog import datasets
from candor.forecasting import forecasters
from candor.presets import preset_names
from candor.runs.bundle import demo_bundle
from candor.runs.run import load_run
from candor.service.metrics import PATHS, Metrics
from candor.service.models import open_models
from candor.service.schemas import ForecastRequest
from candor.service.server import make_service, store_file
from candor.service.settings import ServiceSettings

REPOSITORY = Path(__file__).parents[1]
DOCS = REPOSITORY / "docs"
# A network that hardly learns: everything happens as shown, within seconds.
SMALL = {
    "epochs": 1, "epoch_windows": 64, "validation_windows": 32, "hidden": 8, "heads": 2, "forecast_width": 16,
    "head_width": 16,
}  # fmt: skip
# The exporter to ONNX takes milliseconds for every operation: one of few operations is exported for the one shown.
FEW_OPERATIONS = SMALL | {
    "branches": "[forward]", "decomposition": "false", "patch_length": 14, "patch_stride": 14, "temporal_span": 1,
    "spatial_orders": 1,
}  # fmt: skip
SERVED = "http://127.0.0.1:8000"
EXPORTS = re.compile(r"\$ candor export \S+ --out ")


def pages_in_order(entry: Any) -> Iterator[str]:
    """Yields the pages of the site in the order of its menu."""
    if isinstance(entry, str):
        yield entry
    else:
        for inner in entry.values() if isinstance(entry, dict) else entry:
            yield from pages_in_order(inner)


MENU = list(pages_in_order(yaml.safe_load((REPOSITORY / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]))
PAGES = [page for page in MENU if (DOCS / page).is_file()]


@dataclass(frozen=True)
class Page:
    """A page taken apart: its blocks of code by language, and its prose without them."""

    name: str

    @property
    def text(self) -> str:
        return (DOCS / self.name).read_text(encoding="utf-8")

    def blocks(self, language: str) -> list[str]:
        fences = re.findall(r"^```(\w*)[^\n]*\n(.*?)^```", self.text, flags=re.MULTILINE | re.DOTALL)
        return [text for kind, text in fences if kind == language]

    def sessions(self) -> list[str]:
        """Returns the blocks that are run: those with a prompt."""
        return [block for block in self.blocks("console") if block.startswith("$ ") and not EXPORTS.match(block)]

    def exports(self) -> list[str]:
        """Returns the blocks that export to ONNX, which takes as long as all the others together."""
        return [block for block in self.blocks("console") if EXPORTS.match(block)]

    def files(self) -> dict[str, str]:
        return dict(re.findall(r"^```csv (\S+)\n(.*?)^```", self.text, flags=re.MULTILINE | re.DOTALL))

    @property
    def prose(self) -> str:
        return re.sub(r"^```.*?^```", "", self.text, flags=re.MULTILINE | re.DOTALL)

    def unrun_commands(self) -> Iterator[list[str]]:
        """Yields the arguments of every `candor` in blocks that are not run, also behind launchers and variables."""
        joined = self.prose.replace("\\\n", " ")
        indented = re.findall(r"^    (\S.*)$", joined, flags=re.MULTILINE)
        plain = [block for block in self.blocks("console") if block not in self.sessions()]
        listed = "\n".join([*self.blocks("sh"), *plain, *indented]).replace("\\\n", " ")
        for line in listed.splitlines():
            if re.match(r"(?:\$ )?(?:\w+=\S+ )*(?:candor|torchrun|accelerate) ", line):
                words = shlex.split(line, comments=True)
                yield words[words.index("candor") + 1 :]

    def inline(self, pattern: str) -> list[str]:
        return re.findall(rf"`({pattern})`", self.prose)


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A folder in which the commands of all pages were run one after the other, and what went wrong."""
    folder, troubles = tmp_path_factory.mktemp("docs"), []
    with chdir(folder):
        for page in map(Page, PAGES):
            for name, content in page.files().items():
                Path(name).write_text(content, encoding="utf-8")
            for block in page.sessions():
                troubles += [f"{page.name}: {trouble}" for trouble in follow(block)]
    return folder, troubles


def follow(block: str) -> Iterator[str]:
    """Runs the commands of a block, and yields which failed and which lines shown after one were not printed."""
    printed: set[str] = set()
    for line in block.splitlines():
        if line.startswith("$ "):
            name, *arguments = shlex.split(line[2:])
            assert name == "candor", line
            if arguments[0] == "export" and "--out" in arguments:
                arguments[1] = train_another(arguments[1])
            with redirect_stdout(io.StringIO()) as out:
                code = run(shrunk(arguments))
            printed = {text.rstrip() for text in out.getvalue().splitlines()}
            if code != 0:
                yield f"{line} ended with {code}"
        elif line.rstrip() not in printed:
            yield f"not printed: {line}"


def train_another(folder: str) -> str:
    """Returns the folder of a run on the data of another, with a network of few operations."""
    data, another = load_run(Path(folder)).record.data, f"{folder}-of-few-operations"
    settings = [f"{name}={value}" for name, value in FEW_OPERATIONS.items()]
    with redirect_stdout(io.StringIO()):
        assert run(["train", data, "--run", another, *settings]) == 0
    return another


def shrunk(arguments: list[str]) -> list[str]:
    """Returns the arguments with a small network in place of the one they train, if they train one."""
    if arguments[0] != "train" or {"--resume", "linear"} & set(arguments):
        return arguments
    kept = [word for word in arguments if word.partition("=")[0] not in SMALL]
    return kept + [f"{name}={value}" for name, value in SMALL.items()]


def test_the_menu_lists_every_page_once() -> None:
    notebooks = [f"notebooks/{path.stem}.md" for path in (DOCS / "notebooks").glob("*.py")]
    assert sorted(MENU) == sorted([*(path.name for path in DOCS.glob("*.md")), *notebooks])


def test_commands_run_and_print_what_is_shown(workplace: tuple[Path, list[str]]) -> None:
    assert sum(len(Page(page).sessions()) for page in PAGES) >= 8
    assert workplace[1] == []


def test_python_runs_and_prints_what_its_comments_say(
    workplace: tuple[Path, list[str]], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for registry in (datasets, forecasters):  # what pages register is forgotten with the test
        monkeypatch.setattr(registry, "_entries", dict(registry._entries))
    monkeypatch.chdir(workplace[0])
    pages = {page: "\n".join(Page(page).blocks("python")) for page in PAGES}
    shown = {page: re.findall(r"^print\(.*  # (.*)$", code, flags=re.MULTILINE) for page, code in pages.items()}
    assert sum(bool(lines) for lines in shown.values()) >= 5
    for page, code in pages.items():
        exec(code, {"__name__": "__main__"})
        assert capsys.readouterr().out.splitlines() == shown[page], page


@pytest.mark.slow
def test_exports_run_and_print_what_is_shown(workplace: tuple[Path, list[str]]) -> None:
    blocks = [block for page in PAGES for block in Page(page).exports()]
    assert blocks
    with chdir(workplace[0]):
        assert [trouble for block in blocks for trouble in follow(block)] == []


@pytest.mark.slow
def test_readers_of_a_run_read_those_that_pages_train(workplace: tuple[Path, list[str]]) -> None:
    """Takes minutes, so these are not shown with a prompt."""
    readers = {"explain", "report", "evaluate", "backtest"}
    with chdir(workplace[0]):
        commands = [words for page in PAGES for words in Page(page).unrun_commands() if words[0] in readers]
        known = [words for words in commands if len(words) > 1 and Path(words[1]).is_dir()]
        assert {words[0] for words in known} >= {"explain"}
        for words in known:
            assert run(words) == 0, words


@pytest.mark.parametrize("page", PAGES)
def test_commands_that_are_not_run_are_understood(page: str) -> None:
    for arguments in Page(page).unrun_commands():
        command, rest = find_command(arguments)
        with command.make_context("candor", rest) as context:
            preset = context.params.get("preset")
            is_of_builder = context.command.name == "build-river"
            assert preset is None or is_of_builder or preset in preset_names(), arguments


@pytest.mark.parametrize("page", PAGES)
def test_commands_and_options_named_in_prose_are_there(page: str) -> None:
    for text in Page(page).inline(r"candor [a-z][^`]*"):
        command, rest = find_command(text.split()[1:])
        assert not (rest and hasattr(command, "commands")), text
        known = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in rest if word.startswith("--")} <= known, text


def find_command(arguments: list[str]) -> tuple[Any, list[str]]:
    """Returns the command that the first words name, and the words after them."""
    here: Any = typer.main.get_command(app)
    rest = list(arguments)
    while rest and rest[0] in getattr(here, "commands", {}):
        here = here.commands[rest.pop(0)]
    return here, rest


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_a_page_and_a_heading_and_pictures_are_there(page: str) -> None:
    for is_picture, target in re.findall(r"(!?)\[[^]]*\]\(([^)\s]+)\)", Page(page).prose):
        if re.match(r"[a-z]+:", target):
            continue
        if is_picture:
            assert (DOCS / target).is_file(), target
            continue
        name, _, anchor = target.partition("#")
        assert (name or page) in MENU, target
        assert not anchor or anchor in anchors(name or page), target


def anchors(page: str) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", Page(page).prose, flags=re.MULTILINE)
    return {slugify(heading.replace("`", ""), "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES)
def test_names_and_files_are_there(page: str) -> None:
    for name in [*Page(page).inline(r"candor(?:\.\w+)+"), *re.findall(r"^::: (\S+)$", Page(page).text, re.MULTILINE)]:
        assert find(name) is not None, name
    for path in Page(page).inline(r"(?:src|tests|benchmarks|docs)/[a-z_./-]+"):
        assert (REPOSITORY / path).exists(), path


def find(name: str) -> Any:
    """Returns what a dotted name stands for."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:count]))
        except ModuleNotFoundError:
            continue
        for part in parts[count:]:
            found = getattr(found, part)
        return found
    raise AssertionError(f"{name} is not there")


def equations() -> dict[str, list[str]]:
    """Returns the names in the code that the page gives for each equation."""
    sections = re.split(r"^#+ ", Page("model.md").text, flags=re.MULTILINE)
    found = {}
    for section in sections:
        if match := re.match(r"[^\n]*\n\n\*eq\. (\w+)\*", section):
            assert match[1] not in found, match[1]
            found[match[1]] = re.findall(r"`(candor\.nets\.[\w.]+)`", section)
    return found


LABEL = r"[a-z]+(?:_[a-z]+)+"


@pytest.mark.parametrize("label", equations())
def test_each_equation_names_the_code_that_carries_its_label(label: str) -> None:
    homes = [find(name) for name in equations()[label]]
    assert homes
    assert any(re.search(rf"\b{label}\b", inspect.getsource(home)) for home in homes)


def labels_in(code: str) -> set[str]:
    listed = re.findall(rf"\beq\. ({LABEL}(?:, {LABEL})*)", code)
    return {name for names in listed for name in names.split(", ")}


FILES_OF_THE_MODEL = sorted((REPOSITORY / "src/candor/nets/candor").glob("*.py"))


def test_the_page_of_equations_and_the_code_know_the_same_labels() -> None:
    sources = [*FILES_OF_THE_MODEL, REPOSITORY / "src/candor/nets/layers.py"]
    assert labels_in("\n".join(path.read_text(encoding="utf-8") for path in sources)) == set(equations())


@pytest.mark.parametrize("path", FILES_OF_THE_MODEL, ids=lambda path: path.stem)
def test_every_file_of_the_model_begins_with_its_equations(path: Path) -> None:
    code = path.read_text(encoding="utf-8")
    header = re.search(r"^Equations: ([^.]*)\.$", code, re.MULTILINE)
    assert set(re.findall(LABEL, header[1]) if header else ()) == labels_in(code)


def test_the_reference_holds_every_public_name() -> None:
    assert re.findall(r"^::: candor\.(\w+)$", Page("reference.md").text, re.MULTILINE) == candor.__all__


def test_findings_are_quoted_as_they_are_said() -> None:
    quoted = re.findall(r'^\| "(.*?)" \|', Page("own-sensors.md").text, flags=re.MULTILINE)
    assert len(quoted) >= 10
    said = " ".join(path.read_text(encoding="utf-8") for path in (REPOSITORY / "src/candor/data").rglob("*.py"))
    assert [words for words in quoted if words not in said] == []


def test_the_page_on_serving_tells_all_addresses_and_true_counters() -> None:
    text = Page("serving.md").text
    assert set(re.findall(r"`(?:GET|POST) (/\S*)`", text)) == set(PATHS)
    metrics = Metrics()
    metrics.set_version("a", "candor", "0")
    told = metrics.text().decode()
    for name in re.findall(r"`(candor_\w+)`", text):
        assert f"# TYPE {name} " in told, name


def test_request_bodies_are_those_the_service_takes() -> None:
    bodies = [body for body in Page("serving.md").blocks("json") if "error" not in json.loads(body)]
    assert len(bodies) == 2
    for body in bodies:
        ForecastRequest.model_validate_json(body)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A client of the model that comes with candor, as `candor serve --demo` serves it."""
    settings, metrics, store = ServiceSettings(), Metrics(), tmp_path_factory.mktemp("store")
    models = open_models([demo_bundle()], settings, metrics, lambda source: store_file(source, store))
    with TestClient(make_service(models, settings, metrics)[0], base_url=SERVED) as client:
        yield client


def test_requests_shown_are_answered_and_what_was_sent_is_used(service: httpx.Client) -> None:
    page = Page("serving.md")
    sent = json.loads(page.blocks("json")[0])
    calls = [line for block in page.blocks("sh") for line in block.splitlines() if line.startswith("curl ")]
    assert sum("--json" in call for call in calls) == 1 and len(calls) >= 3
    answers = {}
    for call in calls:
        path = re.findall(rf'{SERVED}(/[^\s"]*)', call)[0]
        answer = service.post(path, json=sent) if "--json" in call else service.get(path)
        assert answer.status_code == 200, (call, answer.text)
        answers[path.partition("?")[0]] = answer.json()
    time, sensor, value = (sent["readings"][0][name] for name in ("time", "sensor", "value"))
    latest = answers["/v1/forecast/latest"]
    assert (latest["coverage"], latest["last_reading"]) == (0.8, time)
    kept = service.get("/v1/history", params={"sensor": sensor, "steps": 1}).json()
    assert (kept["times"], kept["values"]) == ([time], [pytest.approx(value)])


def test_addresses_shown_answer_and_errors_have_the_shape_shown(service: httpx.Client) -> None:
    page = Page("serving.md")
    model = service.get("/v1/models").json()["models"][0]
    sensor = service.get("/v1/sensors").json()["sensors"][0]["id"]
    questions = {
        "/v1/forecast/at": {"time": model["last_origin"]},
        "/v1/history": {"sensor": sensor, "steps": 14, "until": model["last_origin"]},
    }
    shown = re.findall(r"`GET (/\S*)`", page.text)
    assert set(questions) < set(shown)
    for path in shown:
        answer = service.get(path, params=questions.get(path, {}))
        assert answer.status_code == 200, (path, answer.text)
    _, question, refusal = map(json.loads, page.blocks("json"))
    answer = service.post("/v1/forecast", json=question)  # one sensor, where the page asks for half of them
    said = answer.json()["error"]
    assert answer.status_code == 400
    assert (said["code"], set(said)) == (refusal["error"]["code"], set(refusal["error"]))


@pytest.mark.slow
def test_the_site_is_built_without_a_warning_and_fetches_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(
        command,
        cwd=REPOSITORY,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for page in PAGES:
        html = (tmp_path / "site" / page).with_suffix(".html").read_text(encoding="utf-8")
        loaded = re.findall(r"<(?:script|img|iframe|source)\b[^>]*\bsrc=\"?([^\" >]+)", html)
        loaded += re.findall(r"<link\b[^>]*\bhref=\"?([^\" >]+)", html)
        assert loaded
        assert "```" not in html  # a block that was not understood
        assert [address for address in loaded if re.match(r"(?:[a-z]+:)?//", address)] == []
