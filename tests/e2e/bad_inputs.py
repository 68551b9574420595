"""Bad input of every kind, as somebody gives it to `consilium`. What is then said, the guide has (docs/errors.md)."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
from bad_input_breaks import (
    account,
    approval_torn,
    approved,
    archive,
    bomb,
    book,
    broken_key,
    certificate,
    changed,
    changed_key,
    changed_log,
    counted,
    ct,
    downloading,
    drafting,
    elsewhere,
    evaluating,
    evaluating_nothing,
    few_held_out,
    folder,
    funding,
    gone,
    image,
    joining,
    keyless_list,
    linked,
    measured,
    model,
    named,
    notes,
    one_class,
    onnx_of_texts,
    open_to_all,
    own_table,
    parquet,
    png,
    policy,
    policy_changed,
    predicting,
    profiled,
    proposed_already,
    proposed_without_privacy,
    proposing,
    query,
    report,
    rows,
    running,
    scan,
    series,
    server,
    simulating,
    spent,
    stopping,
    store,
    taken_port,
    task_of,
    times,
    torn_ledger,
    torn_list,
    unpublished,
    unreachable,
    voting,
    voting_twice,
)
from bad_input_volumes import VOLUMES
from bad_input_world import LOGISTIC, LOGISTIC_MODEL, MISTYPED, NAME, ROWS, SHADES, TASKS, WITH_CODES, WITH_LOCAL, Case
from consilium_chain.rpc.local_node import free_port
from consilium_client.data.examples import MOST_ROWS
from consilium_operators.model_folder import CARD, INDEX, MODEL
from consilium_operators.model_server import LARGEST_BODY
from dicom_files import EMPTY, long_comment, with_part
from model_driver import written
from PIL import Image
from pydicom import uid
from task_files import DATA

HEAD = "age,sick\n"
CODED = "[columns]\nsick = { column = 'dx', codes = { n = 0, y = 1 } }\n"
BORN = "[columns]\nage = { born = 'born', on = 2020-12-31 }\n"
STEPS = "stay,time,rate\n"
AREAS: dict[str, list[Case]] = {
    "Tables": [
        Case("the path is mistyped", lambda w: w.check("table", "row.csv")),
        Case("the file is empty", rows("")),
        Case("it has a header line alone", rows(HEAD)),
        Case("it is an Excel workbook", rows(b"PK\x03\x04" + NAME.encode())),
        Case("it is in Latin-1", rows(f"{HEAD}50,0\n{NAME}\xfc,1\n".encode("latin-1"))),
        Case("it is in UTF-16", rows(f"{HEAD}50,0\n".encode("utf-16"))),
        Case("it holds a zero byte", rows(f"{HEAD}50\0,0\n")),
        Case("columns are separated by semicolons", rows("age;sick\n50;0\n")),
        Case("there is no header line", rows(f"{NAME},0\n60,1\n")),
        Case("a column is missing", rows("sick\n1\n")),
        Case("a column is not the task's", rows(f"age,sick,name\n50,0,{NAME}\n")),
        Case("a column stands twice", rows("age,age,sick\n50,50,0\n")),
        Case("a line has too few fields", rows(f"{HEAD}50,0\n60\n")),
        Case("a quotation mark is not closed", rows(f'{HEAD}"50,0\n60,1\n')),
        Case("a quotation mark is amidst a cell", rows(f'{HEAD}50,0\n"50"1,0\n')),
        Case("a cell is as long as a book", rows(f"{HEAD}{'9' * 140_000},0\n")),
        Case("a text stands where a number belongs", rows(f"{HEAD}50,0\n{NAME},1\n")),
        Case("a date stands where a number belongs", rows(f"{HEAD}17.05.1971,0\n")),
        Case("decimal commas", rows(f'{HEAD}"50,5",0\n')),
        Case("separators between thousands", rows(f'{HEAD}"1,050.5",0\n')),
        Case("nan", rows(f"{HEAD}nan,0\n")),
        Case("a label that is no class", rows(f"{HEAD}50,0\n60,2\n")),
        Case("a row without a label", rows(f"{HEAD}50,\n")),
        Case("a row without an answer", times("age,days,died\n50,10,1\n60,,0\n")),
        Case("an answer that is neither yes nor no", times("age,days,died\n50,10,2\n")),
        Case("a time that is below 0", times("age,days,died\n50,-3,1\n")),
        Case("a column without a value", rows(f"{HEAD},0\n?,1\n")),
        Case("a column in another unit", rows(HEAD + "700,0\n50,1\n" * 9)),
        Case("the label stands in another column, too", rows(HEAD + "0,0\n1,1\n" * 20)),
        Case("the same, at `join`", joining(HEAD + "0,0\n1,1\n" * 20)),
        Case("more rows than can be counted", rows(HEAD + "50,0\n" * (MOST_ROWS + 1))),
        Case("Parquet that is cut off", rows(parquet(age=[50], sick=[0])[:-9])),
        Case(
            "Parquet with dates", rows(parquet(age=pyarrow.array([571], pyarrow.date32()), sick=[0]))),
        Case(
            "the table no longer fits when the node starts", changed("rows.csv", "60,1", f"{NAME},1")),
    ],
    "Mappings": [
        Case(
            "the path is mistyped", lambda w: w.check("table", "rows.csv", "--mapping", w.folder / "map.toml")),
        Case("it is not TOML", rows(ROWS, "[columns\n")),
        Case("it names a column that the task has not", rows(ROWS, "[columns]\nweight = 'kg'\n")),
        Case("it has an unknown key", rows(ROWS, "[file]\nseparator = ';'\n")),
        Case(
            "its codes are no classes of the task's",
            rows(ROWS, "[columns]\nsick = { codes = { n = 0, y = 5 } }\n")),
        Case(
            "its dates have another form", rows("born,sick\n17.05.1971,0\n", BORN)),
        Case("a patient was born after the visit", rows("born,sick\n2021-05-17,0\n", BORN)),
        Case("a row has no patient", rows("age,sick,MRN\n50,0,1\n60,1,\n", "[file]\npatient = 'MRN'\n")),
        Case(
            "its codes lack what a cell holds", rows(f"Name,age,dx\n{NAME},50,n\n{NAME},60,{NAME}\n", CODED)),
        Case("it counts columns, and the file is Parquet", rows(
            parquet(age=[50], sick=[0]), "[file]\nheader = false\n[columns]\nage = 1\nsick = 2\n"
        )),
    ],
    "Queries": [
        Case("it names a table that is not there", rows(ROWS, query("SELECT *\nFROM persons"))),
        Case("it writes", rows(ROWS, query("COPY rows TO 'copy.csv'"))),
        Case("it never ends", rows(ROWS, query(
            "WITH RECURSIVE r AS (SELECT 1 AS i UNION ALL SELECT i FROM r) SELECT i FROM r WHERE i < 0", seconds=1
        ))),
        Case("it makes numbers of texts", rows(f"{HEAD}{NAME},0\n", query("SELECT CAST(age AS INT) AS age FROM rows"))),
        Case("it gives no rows", rows(ROWS, query("SELECT * FROM rows WHERE age > 100"))),
        Case("two of its columns have one name", rows(ROWS, query("SELECT age, age, sick FROM rows"))),
        Case("it gives lists", rows(ROWS, query("SELECT [age] AS age, sick FROM rows"))),
        Case("a cell of its result is no number", rows(f"{HEAD}50,0\n{NAME},1\n", query("SELECT * FROM rows"))),
        Case("a line of a file has too few fields", rows(f"{HEAD}50,0\n60\n", query("SELECT * FROM rows"))),
        Case("others may read the server's address", server("postgresql://reader:sesam@127.0.0.1/warehouse", 0o644)),
        Case("the server does not run", server(f"postgresql://reader:sesam@127.0.0.1:{free_port()}/warehouse")),
    ],
    "Texts": [
        Case("a text is empty", notes(f"note,found\n{NAME} is well,healthy\n,ill\n")),
        Case("a label is no class's name", notes(f"note,found\n{NAME} is well,fine\n")),
        Case("a column is not the task's", notes(f"note,found,name\nx,ill,{NAME}\n")),
        Case("Parquet has numbers for texts", notes(parquet(note=[5], found=["ill"]))),
        Case("a folder is no class", folder("text", ill__a_dot_txt="x", il__b_dot_txt="x")),
        Case("a folder of nothing", folder("text", _dot_DS_Store="")),
        Case("a Word file among them", folder("text", ill__letter_dot_docx=NAME)),
        Case("a file in Latin-1", folder("text", ill__a_dot_txt=f"{NAME}\xfc".encode("latin-1"))),
        Case("a file as long as a book", folder("text", ill__a_dot_txt=NAME * 20_000)),
        Case("a file without a letter", folder("text", ill__a_dot_txt=" \n")),
        Case("a link leads out of the folder", linked),
        Case(
            "the list names a file outside", folder("text", labels_dot_csv="file,label\n../rows.csv,ill\n")),
        Case(
            "the list names a file that is not there", folder("text", labels_dot_csv="file,label\na.txt,ill\n")),
        Case(
            "the list names a file twice",
            folder("text", labels_dot_csv="file,label\na.txt,ill\na.txt,healthy\n", a_dot_txt="x")),
        Case("two names read the same", folder("text", **{"ill__\u00e9_dot_txt": "x", "ill__e\u0301_dot_txt": "x"})),
    ],
    "Images": [
        Case("a file without a byte", image(b"")),
        Case("a file is cut off", image(png(SHADES)[:-30])),
        Case("a text that is called .png", image(NAME.encode())),
        Case("a header that says 100,000 × 100,000 pixels", image(bomb())),
        Case("16 bits a channel", image(png(SHADES.astype(np.uint16) * 257))),
        Case(
            "an animation", image(png(SHADES, save_all=True, append_images=[Image.fromarray(255 - SHADES)]))),
        Case(
            "CMYK, as for print", image(png(Image.fromarray(SHADES).convert("CMYK"), "JPEG"))),
        Case(
            "transparent parts", image(png(Image.merge("LA", [Image.fromarray(SHADES)] * 2)))),
        Case("a file that systems leave behind", folder("images", ill__Thumbs_dot_db=b"x")),
        Case("a table, where images belong", lambda w: w.check("images", "rows.csv")),
        Case(
            "an archive with arrays of other names", archive(train_images=SHADES[None], train_labels=np.array([1]))),
        Case(
            "an archive with a pickle in it", archive(images=np.array([{"name": NAME}]), labels=np.array([1]))),
        Case(
            "an archive with a label that is no class", archive(images=SHADES[None], labels=np.array([2]))),
    ],
    "Series": [
        Case("there are no outcomes", folder("series", measurements_dot_csv=f"{STEPS}1,1,80\n")),
        Case("a measurement has no time", series(f"{STEPS}1,1,80\n1,,90\n")),
        Case("a measurement has no stay", series(f"{STEPS}1,1,80\n,2,90\n")),
        Case("a clock's time stands where hours belong", series(f"{STEPS}1,07:30,80\n")),
        Case("a stay is listed twice", series(f"{STEPS}1,1,80\n", "stay,sick\n1,0\n1,1\n")),
        Case("all times are beyond the task's steps", series(f"{STEPS}1,60,80\n2,90,90\n")),
        Case("the two files name stays differently", series(f"{STEPS}{NAME},1,80\n")),
    ],
    "DICOM files": [
        Case("the values need a window, and the task has none", scan(ct(), "images")),
        Case("the scan is of another kind", scan(ct(Modality="MR"))),
        Case("a field has no value", scan(ct(Rows=None))),
        Case("a list of the files lies beside them", scan(ct(PixelData=None))),
        Case("the pixels are compressed as most archives do", scan(ct(uid.JPEGLosslessSV1, PixelData=EMPTY))),
        Case("a header holds a book", scan(with_part(ct(), long_comment()))),
        Case("a scan of several frames", scan(ct(NumberOfFrames="40"))),
        Case("it is in colour, and the task has a window", scan(ct(pixels=np.stack([SHADES] * 3, axis=-1)))),
        Case("a PNG of 8 bits, where units are needed", folder("scans", ill__a_dot_png=png(SHADES))),
    ],
    "Volumes and masks": [Case(*one) for one in VOLUMES],
    "Your table, and public data": [
        Case("the label is no column of it", drafting("weight", ROWS)),
        Case("the label is a free text", drafting("note", "age,note\n" + "".join(f"{n},x{n}\n" for n in range(30)))),
        Case("an event is neither 1 nor 0", drafting("age", ROWS, "--event", "age")),
        Case("a time is no number", drafting("seen", "age,seen,died\n50,a,1\n60,b,0\n", "--event", "died")),
        Case("nothing is left but the label", drafting("sick", "sick\n0\n1\n")),
        Case("a row names no hospital", own_table("age,sick,site\n50,0,A\n60,1,\n", "--sites", "site")),
        Case("voters would get no rows", own_table(measured(6), "--hospitals", 3)),
        Case("nobody accepts the licence", lambda w: ["data", "fetch", "heart", "--to", str(w.folder / "data")]),
        Case("the publisher does not answer", unpublished),
        Case("data were not fetched before", lambda w: [
            "demo", "--data", "heart", "--data-dir", str(w.folder / "none"), "--output", str(w.folder / "out"),
        ]),
    ],
    "Key and password": [
        Case("the password is wrong", changed("home/password", "secret", "Secret")),
        Case("there is no password file", gone("home/password")),
        Case("others can read the password", open_to_all("home/password")),
        Case("others can read the key file", open_to_all("home/key.json")),
        Case("there is no key file", gone("home/key.json")),
        Case("the key file is damaged", changed("home/key.json", "^{", "")),
        Case("the node key is of another kind", changed_key),
        Case("the aggregator's certificate is none", certificate),
    ],
    "Home and settings": [
        Case(
            "there is no home in the folder", lambda w: ["hospital", "status", "--home", str(w.folder / "none")]),
        Case("there is one already", lambda w: w.init("--home", w.home)),
        Case(
            "a second home is for the same contracts", lambda w: [
                "hospital", "init", "--like", str(w.home), "--home", str(w.folder / "new"),
                "--address-book", str(w.home / "deployment.json"),
            ]),
        Case("a second home is like another, and has other data", lambda w: w.init("--like", w.home)),
        Case(
            "`init` is given a table that is not there", lambda w: w.init("--data", w.folder / "none.csv")),
        Case("`init` is given hours in words", lambda w: w.init("--hours", "at night")),
        Case("`init` is given an operator that is no account", lambda w: w.init("--operator", "me")),
        Case("node.toml is not TOML", changed("home/node.toml", "data = .*", "data = ")),
        Case("node.toml has an unknown setting", changed("home/node.toml", "data = ", "date = ")),
        Case("a profile's name mixes scripts", lambda w: profiled(w, "P\u0430ypal")),
        Case("there is no server for a profile", lambda w: profiled(w, "Klinik")),
        Case("a task number that is none", lambda w: w.hospital("show", "0")),
        Case("an unknown option", lambda w: w.hospital("status", "--every")),
    ],
    "Policy": [
        Case("there is no policy", gone("home/policy.toml")),
        Case("it has an unknown rule", changed("home/policy.toml", "^", "colour = 'red'\n")),
        Case("the operator is another", policy(operators=["0x" + "77" * 20])),
        Case("a column is not allowed", policy(columns=["weight", "sick"])),
        Case("the aggregator would see single updates", policy("unmasked")),
        Case("the bond is too high", policy(max_bond=100)),
        Case("the task has too many rounds", policy(max_rounds=2)),
        Case("the task may last too long", policy(max_days=30)),
        Case("one fault costs too much of the bond", policy(max_slash_percent=10)),
        Case("cohorts are slashed that are hardly harmful", policy(min_harm=0.1)),
        Case("its cohorts may be too small", policy(min_cohort=5)),
        Case("this hospital has too few rows", policy(min_rows=50)),
        Case("a round is too few steps of training", policy(min_steps=4)),
        Case("exact statistics are not allowed", policy("exact")),
        Case("exact counts are not allowed", policy("counted", summaries="noisy")),
        Case("it was narrowed after the yes", policy_changed(models=["mlp"])),
    ],
    "Privacy budget": [
        Case("the hospital has one, and the task is not private", policy(max_epsilon=5.0)),
        Case("the hospital's is too small for the task", policy("private", max_epsilon=0.5)),
        Case("it is spent on other tasks", spent),
        Case("the task's is so small that no noise is enough", lambda w: w.join("strict")),
        Case("the ledger of what was spent is damaged", torn_ledger),
    ],
    "Exact statistics": [
        Case("nearly the same rows were counted before", counted("50,0\n")),
        Case("rows were counted before under another schema", counted("50,0\n", "max = 120.0", "max = 121.0")),
        Case("the list of counted rows is damaged", torn_list),
        Case("its key is gone", keyless_list),
        Case("its key is damaged", broken_key),
    ],
    "The yes to a task": [
        Case("nobody said yes", lambda w: w.hospital("run", w.stage.tasks["table"])),
        Case("nothing is approved, and no task is named", lambda w: w.hospital("run")),
        Case("nobody is there to say it", lambda w: w.join(yes=False)),
        Case("the task file was altered after it", approved(spec_hash="0" * 64)),
        Case("it was given on another chain", approved(place="1-0x00-1")),
        Case("its file is damaged", approval_torn),
        Case("the node runs already", running),
        Case("a report of the own rows is to be shared, and the policy does not say so", lambda w: w.hospital(
            "evaluate", w.stage.tasks["table"], "--share", str(w.folder / "report.json")
        )),
        Case("no rows were kept out of training", lambda w: w.hospital("evaluate", w.stage.tasks["table"])),
        Case(
            "`leave`, of a task that was never joined", lambda w: w.hospital("leave", w.stage.tasks["table"], "--yes")),
    ],
    "Voters": [
        Case("there is no home in the folder", lambda w: ["voter", "status", "--home", str(w.folder / "none")]),
        Case("there is one already", lambda w: ["voter", "init", "--home", str(w.voter_home())]),
        Case("the account is no voter yet", voting("run", who="rich")),
        Case("nobody is there to say yes to a stake", voting("register", "--stake", "10")),
        Case("a stake of more tokens than there are", voting("register", "--stake", 10**9, "--yes")),
        Case("a stake without ether for gas", voting("register", "--stake", 0, "--yes", who="dry")),
        Case("too little stake is free", voting("run", "--task", task="table")),
        Case("the metric is not allowed", voting("run", "--task", task="table", metrics=["auc"])),
        Case("the policy has an unknown metric", voting("tasks", metrics=["luck"])),
        Case("another process judges from the home", voting_twice),
        Case("a table that does not fit the task", lambda w: w.voter(
            "use-table", w.stage.tasks["text"], "--data", w.folder / "rows.csv"
        )),
        Case("rows of one class alone", one_class),
        Case("fewer rows of a class than the task asks for", few_held_out),
        Case("an evaluation is disclosed of a round without a ballot", lambda w: w.voter(
            "disclose-evaluation", w.stage.tasks["table"], 1, "--out", w.folder / "opened"
        )),
        Case("a file that is no disclosure of an evaluation", lambda w: [
            "verify-evaluation", str(w.write("opened", "{}")), "--data", str(w.folder / "rows.csv"),
            "--artifacts", str(w.folder / "artifacts"),
        ]),
    ],
    "Tasks": [
        Case("the artifact store is not there", store(lambda file: shutil.rmtree(file.parent))),
        Case("it is at a URL that nothing here reads", lambda w: elsewhere(w, "ftp://mirror.example")),
        Case("nobody answers at its URL", lambda w: elsewhere(w, f"http://127.0.0.1:{free_port()}/key")),
        Case("its URL has a password", lambda w: elsewhere(w, "https://me:secret@mirror.example")),
        Case("there is no task of the number", lambda w: w.hospital("show", 999_999)),
        Case("its file is not in the store", store(Path.unlink)),
        Case("its file in the store was altered", store(lambda f: f.write_text("name = ''"))),
        Case("its file is no task file", lambda w: w.join("no task file")),
        Case("its terms on chain are others than its file's", lambda w: w.join("other terms")),
        Case(
            "a task file that is not there", lambda w: ["operator", "check", str(w.folder / "none.toml")]),
        Case("one that is not TOML", lambda w: w.operator_check("name = ")),
        Case("a grid has an unknown axis", simulating("--grid", "codec,colour")),
        Case("a chance above one", simulating("--dropouts", "30")),
        Case("a grid without a seed", simulating("--grid", "bits", "--seeds", "0")),
        Case("one whose name turns the text round", named(r"who \u202elli llaf lliw")),
        Case("one whose name is as long as a book", named("x" * 10_000)),
        Case("one with an unknown model", task_of('[model]\nname = "forest"')),
        Case("one with a model for other data", task_of('[model]\nname = "cnn"')),
        Case(
            "one with a class twice", task_of(LOGISTIC_MODEL, DATA.replace('"no", "yes"', '"no", "no"'))),
        Case(
            "one with a range the wrong way round", task_of(LOGISTIC_MODEL, DATA.replace("120.0", "-1.0"))),
        Case(
            "one with a misspelt setting", task_of(f"{LOGISTIC_MODEL}\n[training]\nepoch = 3")),
    ],
    "Operators": [
        Case("the task file does not hold", proposing(f'{DATA}\n[model]\nname = "forest"')),
        Case("no aggregator is named", lambda w: w.operator(
            "propose", w.write("task.toml", TASKS["private"]), "--artifacts", w.folder / "artifacts", "--yes"
        )),
        Case("the aggregator is no account", proposing(LOGISTIC, "--aggregator", "me")),
        Case(
            "the aggregator's account is mistyped", proposing(LOGISTIC, "--aggregator", MISTYPED)),
        Case("the task file has no privacy, and `--not-private` is missing", proposed_without_privacy),
        Case("chance would slash honest hospitals", task_of(f'{LOGISTIC_MODEL}\n[judging]\nmetric = "auc"')),
        Case("nobody is there to say yes to a proposal", proposing(yes=False)),
        Case("the account has no tokens for the pool", proposing(who="poor")),
        Case("the account has no ether for gas", proposing(who="dry")),
        Case("the same file is proposed already", proposed_already),
        Case("there is no artifact store to put the file into", proposing(LOGISTIC, "--artifacts", "none/at/all")),
        Case("to a pool of somebody else's is added", funding(1, "--yes")),
        Case("nothing is added to a pool", funding(0, "--yes")),
        Case("more is added than the aggregator's bond outweighs", funding(10**6, "--yes", own=True)),
        Case("nobody is there to say yes to adding", funding(1, own=True)),
        Case("a task of somebody else's is stopped", stopping("table", "--yes")),
        Case("a task that there is not is stopped", stopping(999_999, "--yes")),
        Case("nobody is there to say yes to a stop", stopping()),
        Case("a task that there is not is watched", lambda w: w.on_chain("watch", 999_999)),
        Case("the statistics of a task without a summary", lambda w: w.on_chain(
            "statistics", w.stage.tasks["table"], "--artifacts", w.folder / "artifacts"
        )),
        Case("a model of a task that there is not", downloading(999_999)),
        Case("a model of a task that nobody has trained", downloading()),
        Case("a model, and the task's file is not in the store", downloading(lost=True)),
        Case("a model is to be written where something is", downloading(output="artifacts")),
        Case("the folder of a model is not there", lambda w: ["operator", "serve-model", str(w.folder / "none")]),
        Case("a folder that holds no model", lambda w: ["operator", "serve-model", str(w.folder)]),
        Case("its model.json is none", model(lambda folder: (folder / INDEX).write_text("{}"))),
        Case("its parameters were altered", model(lambda folder: (folder / MODEL).write_bytes(b"other"))),
        Case("one of its files is missing", model(lambda folder: (folder / CARD).unlink())),
        Case("an evaluation without rows and without reports", evaluating_nothing),
        Case("a file is no report of a node", lambda w: w.on_chain(
            "evaluate", written(w.folder, TASKS["table"]), "--sites", w.write("report.json", "{}")
        )),
        Case("it leaves out a hospital's own tensors", predicting("age\n50\n", WITH_LOCAL)),
        Case("a model of texts is to be ONNX", onnx_of_texts),
        Case("a folder without a program is put into the store", lambda w: [
            "artifacts", "put", str(w.folder), "--artifacts", str(w.folder)
        ]),
        Case("a plug-in is tested that is not installed", lambda w: ["plugin", "test", "nowhere"]),
        Case("a plug-in's wheel is none", lambda w: ["plugin", "digest", str(w.write("heart.whl", "no zip"))]),
        Case("a plug-in's argument is not as in TOML", lambda w: ["plugin", "test", "x", "--argument", "hidden"]),
        Case("the port is taken", taken_port),
        Case("a value outside the model's range", predicting("age\n50\n5718\n")),
        Case("a code that the model does not know", predicting("age,sex\n50,7\n", WITH_CODES)),
        Case("the tracking server does not answer", lambda w: w.on_chain(
            "watch", w.stage.tasks["table"], "--mlflow", f"http://127.0.0.1:{free_port()}"
        )),
        Case("each row is its own site", evaluating("".join(["age,sick,site\n", *(f"9,1,{k}\n" for k in range(257))]))),
    ],
    "Audit logs": [
        Case("a line of the node's log was changed", changed_log),
        Case("an export is not there", lambda w: ["verify-audit", str(w.folder / "none.jsonl")]),
        Case("a file that is no export", lambda w: ["verify-audit", str(w.folder / "rows.csv")]),
        Case("a report of an audit is not there", lambda w: ["verify-report", str(w.folder / "none.json")]),
        Case("a file that is no report of an audit", lambda w: ["verify-report", str(w.folder / "rows.csv")]),
        Case("a report of an audit is not signed", report(lambda file: file.update(signature=None))),
        Case("a field of it was changed", report(lambda file: file["report"].update(made_by="another"))),
        Case("it names another signer", report(lambda file: file["signature"].update(account="0x" + "77" * 20))),
        Case("it is of another chain", report(lambda file: None, compared=True)),
    ],
    "Chain and contracts": [
        Case("no node answers", unreachable),
        Case("there is no address book", gone("home/deployment.json")),
        Case("the address book is malformed", changed("home/deployment.json", "^{", "")),
        Case("it is of another chain", book(chain_id=1)),
        Case("nothing is at its addresses", book(tasks="0x" + "77" * 20)),
        Case("the account has no ether", account("dry")),
        Case("the account has no tokens for the bond", account("poor")),
        Case("the faucet has less", lambda w: [
            "chain", "local", "fund", w.stage.poor.address, "--tokens", "1", "--ether", str(10**12), "--rpc",
            w.stage.chain.node.url, "--address-book", str(w.home / "deployment.json"),
        ]),
    ],
}  # fmt: skip


@dataclass(frozen=True)
class Sent:
    """`did`: what somebody sent to a served model, as the guide says it; bytes are the body of a prediction."""

    did: str
    body: bytes = b""
    path: str = "/predict"
    media_type: str = "application/json"


def asked(*given: object) -> bytes:
    return json.dumps({"rows": given}).encode()


# To a model of the task "table".
REQUESTS = [
    Sent("no JSON", NAME.encode()),
    Sent("it is not said to be JSON", asked({"age": 50}), media_type="text/plain"),
    Sent("JSON of another form", b"[]"),
    Sent("no row", asked()),
    Sent("a row without a column", asked({"age": 50}, {})),
    Sent("a column that the task does not have", asked({"age": 50, NAME: 1})),
    Sent("a text where a number belongs", asked({"age": 50}, {"age": NAME})),
    Sent("a value outside the model's range", asked({"age": 50}, {"age": -1})),
    Sent("a decimal comma", asked({"age": "1,5"})),
    Sent("too many rows", asked(*[{"age": 50}] * 1_001)),
    Sent("too many bytes", b" " * (LARGEST_BODY + 1)),
    Sent("another address", asked({"age": 50}), path="/"),
]
