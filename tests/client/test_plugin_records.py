"""A plug-in's RECORD: one digest in its wheel and where it is installed, and a refusal for each hostile one."""

from __future__ import annotations

import shutil
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from consilium.client import Client
from consilium_chain.tasks.task_spec import parse_task_spec
from consilium_cli.main import app
from consilium_client.consent import Policy
from consilium_client.errors import OwnersRefusal
from consilium_client.models import model_of
from consilium_client.plugins.errors import PluginError
from consilium_client.plugins.installed import all_installed, digest_of_wheel, find, require_intact, verified
from consilium_client.plugins.record import parse_record
from hospital_driver import OPEN_POLICY
from plugin_wheels import FOLDER, NAME, PERCEPTRON, hash_of, model_of_wheel, pip_install, task_of, unpack, wheel
from pydantic import ValidationError
from raised_faults import raises_fault
from training_driver import task_file
from typer.testing import CliRunner

GOOD = f"test_plugin/__init__.py,{hash_of(b'')},0\n"
Site = tuple[Path, Path]  # a wheel, and the folder where it is installed


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    made = wheel(tmp_path / "wheels", more={"test_plugin/layers/deep.py": "", "test_plugin/table.txt": "1,2"})
    into = unpack(made, tmp_path / "site")
    monkeypatch.syspath_prepend(str(into))
    return made, into


# --- the digest -----------------------------------------------------------------------------------------------------


def test_a_wheel_and_its_installation_by_pip_have_one_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = wheel(tmp_path / "wheels")
    pip_install(made, tmp_path / "site")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    raw = (tmp_path / "site" / FOLDER / "RECORD").read_text()
    assert {"INSTALLER", "REQUESTED", "direct_url.json"} <= {
        line.partition(",")[0].split("/")[-1] for line in raw.split()
    }
    assert ".pyc," in raw
    found = verified(model_of_wheel(made))
    assert found.record == digest_of_wheel(made)
    assert len(found.record.digest) == 64


def test_order_compiled_files_and_scripts_do_not_change_the_digest() -> None:
    lines = [GOOD, f"test_plugin/b.py,{hash_of(b'b')},1\n", f"{FOLDER}/METADATA,{hash_of(b'm')},1\n"]
    notes = [
        "../../../bin/tool,,\n",
        f"../../bin/tool2,{hash_of(b's')},1\n", "test_plugin/__pycache__/b.cpython-311.pyc,,\n",
        f"{FOLDER}/INSTALLER,{hash_of(b'pip')},3\n", f"{FOLDER}/RECORD,,\n", f"{FOLDER}/uv_cache.json,,\n",
    ]  # fmt: skip
    first = parse_record("".join(lines).encode(), FOLDER)
    assert parse_record("".join([*notes, *reversed(lines)]).encode(), FOLDER) == first
    changed = [parse_record(text.encode(), FOLDER).digest for text in (
        "".join(lines[:2]), "".join(lines).replace("b.py", "c.py"),
        "".join(lines).replace(hash_of(b"b"), hash_of(b"c")),
        "".join(lines).replace(f"{hash_of(b'b')},1", f"{hash_of(b'b')},2"),
    )]  # fmt: skip
    assert len({first.digest, *changed}) == 5


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (f"../evil.py,{hash_of(b'')},0", "leads out"),
        (f"../../bin/../evil.py,{hash_of(b'')},0", "leads out"),
        (f"test_plugin/../../evil.py,{hash_of(b'')},0", "leads out"),
        (f"/etc/passwd,{hash_of(b'')},0", "leads out"),
        (f"C:/evil.py,{hash_of(b'')},0", "leads out"),
        (f"test_plugin\\evil.py,{hash_of(b'')},0", "leads out"),
        (f"test_plugin//evil.py,{hash_of(b'')},0", "leads out"),
        (f"test_plugin/./evil.py,{hash_of(b'')},0", "leads out"),
        (f"test_plugin/a\x00.py,{hash_of(b'')},0", "leads out|cannot be read"),
        (f"test_plugin/\u202eyp.a,{hash_of(b'')},0", "leads out"),
        (f"{'a' * 600}.py,{hash_of(b'')},0", "leads out"),
        ("test_plugin/a.py,,", "no SHA-256"),
        (f"test_plugin/a.py,{hash_of(b'')},", "no SHA-256"),
        (f"test_plugin/a.py,{hash_of(b'')},-1", "no SHA-256"),
        (f"test_plugin/a.py,{hash_of(b'').replace('sha256', 'md5')},0", "no SHA-256"),
        (f"test_plugin/a.py,{hash_of(b'')[:-1]},0", "no SHA-256"),
        (f"test_plugin/a.py,{hash_of(b'')}", "2 fields"),
        (f"test_plugin/a.py,{hash_of(b'')},0,x", "4 fields"),
        (f'"test_plugin/a.py,{hash_of(b"")},0', "cannot be read"),
        (f"test_plugin/__init__.py,{hash_of(b'x')},1", "twice"),
        (f"Test_Plugin/__init__.py,{hash_of(b'')},0", "twice"),
        (f"test_plugin/__pycache__/a.so,{hash_of(b'')},0", "no compiled file"),
        (f"evil.pth,{hash_of(b'')},0", "as it starts"),
        (f"sitecustomize.py,{hash_of(b'')},0", "as it starts"),
        (f"usercustomize/__init__.py,{hash_of(b'')},0", "as it starts"),
        (f"torch-9.0.dist-info/METADATA,{hash_of(b'')},0", "no part of its packages"),
        (f"test_plugin-1.0.data/scripts/x,{hash_of(b'')},0", "no part of its packages"),
    ],
)  # fmt: skip
def test_a_hostile_record_is_refused(line: str, why: str) -> None:
    with raises_fault(PluginError, "PluginMalformed", why):
        parse_record(f"{GOOD}{line}\n".encode(), FOLDER)


@pytest.mark.parametrize(
    ("raw", "folder", "why"),
    [
        (b"\xff", FOLDER, "cannot be read"),
        (b"", FOLDER, "no package"),
        (f"{FOLDER}/METADATA,{hash_of(b'')},0\n".encode(), FOLDER, "no package"),
        (GOOD.encode(), "../x-1.dist-info", "no name and version"),
        (GOOD.encode(), "x.dist-info", "no name and version"),
        (b"x" * ((1 << 22) + 1), FOLDER, "bytes, more than"),
        (b"a,b,c\n" * 20_001, FOLDER, "files, more than"),
    ],
    ids=["no text", "empty", "metadata alone", "a folder elsewhere", "no version", "long", "many files"],
)  # fmt: skip
def test_a_record_that_is_none_is_refused(raw: bytes, folder: str, why: str) -> None:
    with raises_fault(PluginError, "PluginMalformed", why):
        parse_record(raw, folder)


# --- what is installed ----------------------------------------------------------------------------------------------


def link(site: Path) -> None:
    target = site.parent / "elsewhere.py"
    shutil.copy(site / "test_plugin" / "__init__.py", target)
    (site / "test_plugin" / "__init__.py").unlink()
    (site / "test_plugin" / "__init__.py").symlink_to(target)


def linked_folder(site: Path) -> None:
    shutil.move(site / "test_plugin" / "layers", site.parent / "layers")
    (site / "test_plugin" / "layers").symlink_to(site.parent / "layers", target_is_directory=True)


@pytest.mark.parametrize(
    ("alter", "why"),
    [
        (lambda site: (site / "test_plugin" / "__init__.py").write_text(PERCEPTRON.replace("4", "5")), "another file"),
        (lambda site: (site / "test_plugin" / "table.txt").write_text("1,2,3"), "table.txt is another file"),
        (lambda site: (site / "test_plugin" / "table.txt").unlink(), "table.txt cannot be read"),
        (lambda site: (site / "test_plugin" / "more.py").write_text(""), "more.py is not listed"),
        (lambda site: (site / "test_plugin" / "layers" / "deep.pyc").write_text(""), "deep.pyc is not listed"),
        (lambda site: (site / "test_plugin" / "fast.abi3.so").write_text(""), "fast.abi3.so is not listed"),
        (lambda site: (site / "test_plugin.py").write_text(""), "takes the name"),
        (lambda site: (site / "test_plugin.cpython-311-x86_64-linux-gnu.so").write_text(""), "takes the name"),
        (lambda site: (site / FOLDER / "entry_points.txt").write_text("[consilium.models]\nperceptron = test_plugin:b"),
         "entry_points.txt is another file"),
        (lambda site: (site / FOLDER / "more.txt").write_text(""), "more.txt is not listed"),
        (link, "another file"),
        (linked_folder, "is a link"),
    ],
    ids=["code", "data", "a file removed", "a module added", "a compiled module added", "a library added",
         "a module of its name", "a library of its name", "its entry", "its metadata", "a link", "a linked folder"],
)  # fmt: skip
def test_altered_files_are_found_before_anything_is_imported(
    site: Site, alter: Callable[[Path], object], why: str
) -> None:
    model = model_of_wheel(site[0])
    model_of(task_of(model)).require_installed()
    alter(site[1])
    with raises_fault(PluginError, "PluginAltered", why):
        model_of(task_of(model)).require_installed()


def test_compiled_files_beside_modules_are_no_alteration(site: Site) -> None:
    (site[1] / "test_plugin" / "__pycache__").mkdir()
    (site[1] / "test_plugin" / "__pycache__" / "__init__.cpython-311.pyc").write_bytes(b"never read")
    require_intact(find(NAME))


def test_other_plug_ins_are_refused_by_name(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = model_of_wheel(site[0])
    with raises_fault(PluginError, "PluginMissing", "test-plugin 2.0 is not installed here, but 1.0 is.*pip install"):
        verified(own.model_copy(update={"version": "2.0"}))
    with raises_fault(PluginError, "PluginMissing", "nowhere"):
        verified(own.model_copy(update={"distribution": "nowhere"}))
    with raises_fault(PluginError, "PluginOther", f"{own.record}.*{'ab' * 32}"):
        verified(own.model_copy(update={"record": "ab" * 32}))
    with raises_fault(PluginError, "PluginMalformed", "no model other"):
        verified(own.model_copy(update={"entry": "other"}))
    unpack(site[0], tmp_path / "again")
    monkeypatch.syspath_prepend(str(tmp_path / "again"))
    with raises_fault(PluginError, "PluginMalformed", "installed twice"):
        verified(own)


@pytest.mark.parametrize(
    "entry", ["os:system", "test_plugin", "test_plugin:", "test_plugin:a b", "../x:y", "torch.nn:Linear"]
)
def test_an_entry_point_of_other_packages_is_refused(
    entry: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = wheel(tmp_path / "wheels", entry=entry)
    monkeypatch.syspath_prepend(str(unpack(made, tmp_path / "site")))
    with raises_fault(PluginError, "PluginMalformed", "module:object of its own"):
        find(NAME)
    (listed,) = [one for one in all_installed() if isinstance(one, PluginError)]
    assert "module:object" in str(listed)


def test_a_wheel_that_is_none_is_refused(tmp_path: Path) -> None:
    made = wheel(tmp_path / "wheels")
    (tmp_path / "none.whl").write_bytes(b"no zip")
    with raises_fault(PluginError, "PluginMalformed", "no wheel"):
        digest_of_wheel(tmp_path / "none.whl")
    with zipfile.ZipFile(made, "a") as more:
        more.writestr("evil.pth", "import os")
    with raises_fault(PluginError, "PluginMalformed", "does not list evil.pth"):
        digest_of_wheel(made)
    made = wheel(tmp_path / "again")
    with zipfile.ZipFile(made, "a") as more, pytest.warns(UserWarning, match="Duplicate"):
        more.writestr("test_plugin/__init__.py", "import os")
    with raises_fault(PluginError, "PluginMalformed", "two files of one name"):
        digest_of_wheel(made)


# --- tasks and policies ---------------------------------------------------------------------------------------------


def test_a_policy_names_plug_ins_by_their_digest(site: Site) -> None:
    spec, operator = task_of(model_of_wheel(site[0])), "0x" + "11" * 20
    record = spec.model.record  # type: ignore[union-attr]
    Policy.model_validate({**OPEN_POLICY, "plugins": [record]}).require(spec, operator)
    others: list[dict[str, Any]] = [{}, {"plugins": []}, {"plugins": ["ab" * 32]}, {"programs": "any"}]
    for rules in others:
        policy = Policy.model_validate({**OPEN_POLICY, **rules})
        with raises_fault(
            OwnersRefusal, "NotAllowed", f"`plugins` does not list its plug-in test-plugin 1.0, {record}"
        ):
            policy.require(spec, operator)
    with pytest.raises(ValidationError):
        Policy.model_validate({**OPEN_POLICY, "plugins": "any"})


@pytest.mark.parametrize(
    ("changes", "training", "update", "why"),
    [
        ({}, "epochs = 1\n[privacy]\nepsilon = 8.0\nmax_grad_norm = 1.0", "bits = 10", "no form with noise"),
        ({"moving": ["2.bias"]}, "epochs = 1", 'codec = {name = "hash", buckets = 3}', "moves without a gradient"),
        ({"moving": ["2.bias"]}, "steps = 1\ncontrol_variates = true", "bits = 10", "moves without a gradient"),
    ],
    ids=["private", "a codec", "control variates"],
)  # fmt: skip
def test_what_a_plug_in_cannot_do_is_refused_in_the_task_file(
    site: Site, changes: dict[str, object], training: str, update: str, why: str
) -> None:
    with pytest.raises(Exception, match=why):
        task_of(model_of_wheel(site[0], **changes), training, update)


@pytest.mark.parametrize(
    "changes",
    [
        {"moving": ["9.bias"]}, {"moving": ["0.weight", "0.bias", "2.weight", "2.bias"]},
        {"distribution": "Test_Plugin"},
        {"record": "0x" + "ab" * 31}, {"entry": "../x"}, {"version": "1 0"}, {"arguments": {"a": {"b": 1}}},
        {"arguments": {"a": "x" * 1_001}}, {"arguments": {f"{at}": 1 for at in range(33)}},
        {"arguments": {"a": float("nan")}}, {"arguments": {"a": [1] * 65}}, {"shapes": {"w": [0]}},
    ],
)  # fmt: skip
def test_a_malformed_section_is_refused(site: Site, changes: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        model_of_wheel(site[0], **changes)


def test_a_task_names_its_start_so_that_an_auditor_needs_no_plug_in(site: Site) -> None:
    spec = task_of(model_of_wheel(site[0]))
    with pytest.raises(ValidationError, match="an auditor may not have it"):
        type(spec).model_validate(spec.model_dump(exclude={"start"}))
    shutil.rmtree(site[1])
    assert (model_of(spec).parameters, spec.coordinates) == (13, 13)


def test_a_hospital_is_shown_which_plug_in_a_task_needs_and_its_state_here(site: Site) -> None:
    spec = task_of(model_of_wheel(site[0], arguments={"hidden": 4}))
    task: Any = SimpleNamespace(spec=spec)
    record = spec.model.record  # type: ignore[union-attr]

    def shown(**rules: Any) -> dict[str, str]:
        home: Any = SimpleNamespace(policy=lambda: Policy.model_validate({**OPEN_POLICY, **rules}))
        return dict(Client.plugin(home, task))

    assert shown(plugins=[record]) == {
        "plug-in": "test-plugin 1.0, its model perceptron", "digest": record, "arguments": "hidden = 4",
        "installed here": "yes, with the files of its digest", "allowed here": "yes",
    }  # fmt: skip
    (site[1] / "test_plugin" / "table.txt").unlink()
    found = shown()
    assert found["allowed here"].startswith("no: `plugins`")
    assert found["installed here"].startswith("no: the installed files of the plug-in test-plugin 1.0 are not those")
    assert Client.plugin(task, SimpleNamespace(spec=parse_task_spec(task_file("epochs = 1")))) == []  # type: ignore[arg-type]


def test_commands_list_plug_ins_and_tell_a_wheels_digest(site: Site) -> None:
    def say(*arguments: object) -> str:
        ran = CliRunner(env={"COLUMNS": "400"}).invoke(app, ["plugin", *map(str, arguments)], catch_exceptions=False)
        assert ran.exit_code == 0, ran.output
        return ran.output

    digest = digest_of_wheel(site[0]).digest
    assert say("digest", site[0]) == f"test-plugin 1.0\n{digest}\n"
    assert f"test-plugin 1.0\n  models  perceptron\n  digest  {digest}\n" in say("list")
    (site[1] / "test_plugin" / "more.py").write_text("")
    assert "  unfit   the installed files" in say("list")
    assert "test_plugin" not in sys.modules
