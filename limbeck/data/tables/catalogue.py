"""Known tables by name, with schemas written from their public documentation and never from their records.

Categories are the documented lists. Bounds are what the documentation states or the way of measuring allows (top codes,
digits of a field, converters), rounded outwards, and where neither says, a round number that should be ample.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from limbeck.data.tables.schema import TableSchema
from limbeck.data.tables.table import Table, read_table, rows_of
from limbeck.errors import RequestError

EMBEDDED = "breast_cancer"
SUFFIXES = (".csv.gz", ".csv", ".parquet", ".feather")


@dataclass(frozen=True)
class KnownTable:
    """One known table.

    Attributes:
        name: what it is called here. title: what people call it.
        files: what its file may be called below the data folder, without a suffix.
        columns: makes the columns of its schema.
        licence, homepage: its terms, and where it is described.
        records: the number of rows of each split, which its documentation states; empty where it has no split.
    """

    name: str
    title: str
    files: tuple[str, ...]
    columns: Callable[[], list[dict[str, Any]]]
    licence: str
    homepage: str
    records: dict[str, int]

    @property
    def schema(self) -> TableSchema:
        return _schema(self.name)


def known_table(name: str) -> KnownTable:
    """One table of the catalogue."""
    if name not in TABLES:
        raise RequestError(f"no table is called {name!r}; known are {', '.join(TABLES)}")
    return TABLES[name]


def load_table(name: str, split: str, folder: Path) -> Table:
    """The rows of one split of a known table, from its file in a data folder; scikit-learn's own is always there.

    Raises:
        RequestError: the name is not known, or its file is not in the folder.
    """
    table = known_table(name)
    if name == EMBEDDED:
        return _embedded(table.schema, split)
    path = find_table(table, folder)
    if path is None:
        raise RequestError(
            f"{name} is not in {folder}: get it from {table.homepage}, and say where {name}.csv is with --data-dir or "
            "LIMBECK_DATA"
        )
    return read_table(path, table.schema, split=split)


def _embedded(schema: TableSchema, split: str) -> Table:
    """Breast cancer: every fourth row is for testing."""
    from sklearn.datasets import load_breast_cancer

    if split not in ("train", "test"):
        raise RequestError(f"the split is {split!r}; train or test is expected")
    frame = load_breast_cancer(as_frame=True).frame
    test = np.arange(len(frame)) % 4 == 0
    return Table(rows_of(schema, frame[test if split == "test" else ~test]))


def find_table(table: KnownTable, folder: Path) -> Path | None:
    """Where a table is in a data folder; None where it is not."""
    places = [folder / f"{file}{suffix}" for file in table.files for suffix in SUFFIXES]
    return next((place for place in places if place.is_file()), None)


@cache
def _schema(name: str) -> TableSchema:
    return TableSchema(columns=TABLES[name].columns())


def _number(name: str, low: float, high: float, **options: Any) -> dict[str, Any]:
    return {"name": name, "kind": "numerical", "low": low, "high": high, **options}


def _whole(name: str, low: int, high: int, **options: Any) -> dict[str, Any]:
    return _number(name, low, high, integer=True, **options)


def _amount(name: str, high: int) -> dict[str, Any]:
    return _whole(name, 0, high, scale="log")


def _categories(name: str, words: str, **options: Any) -> dict[str, Any]:
    return {"name": name, "kind": "categorical", "categories": words.split(), **options}


def _flag(name: str, **options: Any) -> dict[str, Any]:
    return {"name": name, "kind": "boolean", "true": 1, "false": 0, **options}


def _dropped(name: str) -> dict[str, Any]:
    return {"name": name, "kind": "dropped"}


def _target(name: str, classes: list, groups: dict[str, list] | None = None) -> dict[str, Any]:
    return {"name": name, "kind": "target", "classes": classes, "groups": groups or {}}


# The longer lists of adult.names.
WORKCLASS = """
Private Self-emp-not-inc Self-emp-inc Federal-gov Local-gov State-gov Without-pay Never-worked
"""
EDUCATION = """
Bachelors Some-college 11th HS-grad Prof-school Assoc-acdm Assoc-voc 9th 7th-8th 12th Masters 1st-4th 10th Doctorate
5th-6th Preschool
"""
MARITAL_STATUS = """
Married-civ-spouse Divorced Never-married Separated Widowed Married-spouse-absent Married-AF-spouse
"""
OCCUPATION = """
Tech-support Craft-repair Other-service Sales Exec-managerial Prof-specialty Handlers-cleaners Machine-op-inspct
Adm-clerical Farming-fishing Transport-moving Priv-house-serv Protective-serv Armed-Forces
"""
NATIVE_COUNTRY = """
United-States Cambodia England Puerto-Rico Canada Germany Outlying-US(Guam-USVI-etc) India Japan Greece South China
Cuba Iran Honduras Philippines Italy Poland Jamaica Vietnam Mexico Portugal Ireland France Dominican-Republic Laos
Ecuador Taiwan Haiti Columbia Hungary Guatemala Nicaragua Scotland Thailand Yugoslavia El-Salvador Trinadad&Tobago
Peru Hong Holand-Netherlands
"""


def _adult() -> list[dict[str, Any]]:
    """The lists of adult.names. Ages are top-coded at 90 and gains at 99,999, and hours have two digits."""
    gap = {"missing": "indicator"}
    return [
        _whole("age", 17, 90),
        _categories("workclass", WORKCLASS, **gap),
        _whole("fnlwgt", 0, 1_500_000, scale="log"),
        _categories("education", EDUCATION),
        _whole("education-num", 1, 16),
        _categories("marital-status", MARITAL_STATUS),
        _categories("occupation", OCCUPATION, **gap),
        _categories("relationship", "Wife Own-child Husband Not-in-family Other-relative Unmarried"),
        _categories("race", "White Asian-Pac-Islander Amer-Indian-Eskimo Other Black"),
        _categories("sex", "Female Male"),
        _amount("capital-gain", 99_999),
        _amount("capital-loss", 5_000),
        _whole("hours-per-week", 1, 99),
        _categories("native-country", NATIVE_COUNTRY, **gap),
        _target("income", ["<=50K", ">50K"], {"<=50K": ["<=50K", "<=50K."], ">50K": [">50K", ">50K."]}),
        {"name": "split", "kind": "split"},
    ]


def _cervical() -> list[dict[str, Any]]:
    """Answers that patients were free to leave out; the three other tests of the same cells are dropped."""
    gap = {"missing": "indicator"}
    diseases = (
        "condylomatosis", "cervical condylomatosis", "vaginal condylomatosis", "vulvo-perineal condylomatosis",
        "syphilis", "pelvic inflammatory disease", "genital herpes", "molluscum contagiosum", "AIDS", "HIV",
        "Hepatitis B", "HPV",
    )  # fmt: skip
    return [
        _whole("Age", 10, 90),
        _whole("Number of sexual partners", 0, 30, scale="log", **gap),
        _whole("First sexual intercourse", 8, 40, **gap),
        _whole("Num of pregnancies", 0, 15, **gap),
        _flag("Smokes", **gap),
        _number("Smokes (years)", 0, 50, scale="log", **gap),
        _number("Smokes (packs/year)", 0, 50, scale="log", **gap),
        _flag("Hormonal Contraceptives", **gap),
        _number("Hormonal Contraceptives (years)", 0, 40, scale="log", **gap),
        _flag("IUD", **gap),
        _number("IUD (years)", 0, 30, scale="log", **gap),
        _flag("STDs", **gap),
        _whole("STDs (number)", 0, 12, scale="log", **gap),
        *(_flag(f"STDs:{disease}", **gap) for disease in diseases),
        _whole("STDs: Number of diagnosis", 0, 12, scale="log"),
        _number("STDs: Time since first diagnosis", 0, 40, scale="log", **gap),
        _number("STDs: Time since last diagnosis", 0, 40, scale="log", **gap),
        *(_flag(name) for name in ("Dx:Cancer", "Dx:CIN", "Dx:HPV", "Dx")),
        *(_dropped(name) for name in ("Hinselmann", "Schiller", "Cytology")),
        _target("Biopsy", [0, 1]),
    ]


def _epileptic() -> list[dict[str, Any]]:
    """A second of EEG from a converter of 12 bits; a seizure against the four other states."""
    amplitudes = [_whole(f"X{i}", -2048, 2047) for i in range(1, 179)]
    return [_dropped("id"), *amplitudes, _target("y", ["seizure", "rest"], {"seizure": [1], "rest": [2, 3, 4, 5]})]


def _isolet() -> list[dict[str, Any]]:
    """Features scaled to [-1, 1] by their authors; vowels against consonants, by the letters' numbers."""
    vowels = [1, 5, 9, 15, 21]
    groups = {"vowel": vowels, "consonant": [i for i in range(1, 27) if i not in vowels]}
    features = [_number(f"f{i}", -1, 1) for i in range(1, 618)]
    target = _target("class", ["consonant", "vowel"], groups)
    return [*features, target, _dropped("isolet_part"), {"name": "split", "kind": "split"}]


def _intrusion() -> list[dict[str, Any]]:
    """The fields of kddcup.names. Windows hold at most 511 and 255 connections, rates lie in [0, 1]."""
    services = """aol auth bgp courier csnet_ns ctf daytime discard domain domain_u echo eco_i ecr_i efs exec finger ftp
    ftp_data gopher harvest hostnames http http_2784 http_443 http_8001 imap4 IRC iso_tsap klogin kshell ldap link login
    mtp name netbios_dgm netbios_ns netbios_ssn netstat nnsp nntp ntp_u other pm_dump pop_2 pop_3 printer private red_i
    remote_job rje shell smtp sql_net ssh sunrpc supdup systat telnet tftp_u tim_i time urh_i urp_i uucp uucp_path vmnet
    whois X11 Z39_50"""
    attacks = {
        "normal": "normal",
        "dos": "back land neptune pod smurf teardrop",
        "probe": "ipsweep nmap portsweep satan",
        "r2l": "ftp_write guess_passwd imap multihop phf spy warezclient warezmaster",
        "u2r": "buffer_overflow loadmodule perl rootkit",
    }
    errors = ("serror", "srv_serror", "rerror", "srv_rerror")
    rates = (*errors, "same_srv", "diff_srv", "srv_diff_host")
    host_rates = ("same_srv", "diff_srv", "same_src_port", "srv_diff_host", *errors)
    return [
        _amount("duration", 100_000),
        _categories("protocol_type", "icmp tcp udp"),
        _categories("service", services, other="other"),
        _categories("flag", "OTH REJ RSTO RSTOS0 RSTR S0 S1 S2 S3 SF SH"),
        _amount("src_bytes", 2_000_000_000),
        _amount("dst_bytes", 2_000_000_000),
        _flag("land"),
        _whole("wrong_fragment", 0, 3),
        _amount("urgent", 15),
        _amount("hot", 127),
        _amount("num_failed_logins", 15),
        _flag("logged_in"),
        _amount("num_compromised", 10_000),
        _flag("root_shell"),
        _whole("su_attempted", 0, 2),
        _amount("num_root", 10_000),
        _amount("num_file_creations", 127),
        _amount("num_shells", 15),
        _amount("num_access_files", 15),
        _amount("num_outbound_cmds", 15),
        _flag("is_host_login"),
        _flag("is_guest_login"),
        _whole("count", 0, 511),
        _whole("srv_count", 0, 511),
        *(_number(f"{name}_rate", 0, 1) for name in rates),
        _whole("dst_host_count", 0, 255),
        _whole("dst_host_srv_count", 0, 255),
        *(_number(f"dst_host_{name}_rate", 0, 1) for name in host_rates),
        _target("label", list(attacks), {name: [f"{a}." for a in list_.split()] for name, list_ in attacks.items()}),
    ]


def _breast_cancer() -> list[dict[str, Any]]:
    """Measurements of cell nuclei; bounds around those of scikit-learn's description, class 0 is malignant."""
    nuclei = {
        "radius": (5, 30), "texture": (5, 40), "perimeter": (40, 200), "area": (100, 2600), "smoothness": (0, 0.2),
        "compactness": (0, 0.4), "concavity": (0, 0.5), "concave points": (0, 0.25), "symmetry": (0.1, 0.35),
        "fractal dimension": (0.04, 0.1),
    }  # fmt: skip
    errors = (3, 5, 25, 600, 0.04, 0.2, 0.4, 0.06, 0.1, 0.04)
    lows = (5, 10, 50, 150, 0.05, 0, 0, 0, 0.1, 0)
    highs = (40, 50, 260, 4500, 0.25, 1.1, 1.3, 0.3, 0.7, 0.25)
    return [
        *(_number(f"mean {name}", *bounds) for name, bounds in nuclei.items()),
        *(_number(f"{name} error", 0, high) for name, high in zip(nuclei, errors, strict=True)),
        *(_number(f"worst {name}", low, high) for name, low, high in zip(nuclei, lows, highs, strict=True)),
        _target("target", [0, 1]),
    ]


UCI = "https://archive.ics.uci.edu/dataset"
TABLES = {
    table.name: table
    for table in (
        KnownTable(
            "adult", "Adult (census income)", ("adult",), _adult, "CC BY 4.0", f"{UCI}/2",
            {"train": 32_561, "test": 16_281},
        ),
        KnownTable(
            "cervical", "Cervical cancer risk factors", ("cervical", "cervical_cancer"), _cervical, "CC BY 4.0",
            f"{UCI}/383", {},
        ),
        KnownTable(
            "epileptic", "Epileptic seizure recognition", ("epileptic", "epileptic_seizure"), _epileptic,
            "none stated; cite Andrzejak et al. (2001)", f"{UCI}/388", {},
        ),
        KnownTable(
            "isolet", "Isolet (spoken letters), vowels against consonants", ("isolet",), _isolet, "CC BY 4.0",
            f"{UCI}/54", {"train": 6_238, "test": 1_559},
        ),
        KnownTable(
            "intrusion", "KDD Cup 1999, 10%, attacks in four families", ("intrusion", "kddcup99_10percent"), _intrusion,
            "CC BY 4.0", f"{UCI}/130", {},
        ),
        KnownTable(
            "breast_cancer", "Breast cancer Wisconsin (the copy in scikit-learn)", ("breast_cancer",), _breast_cancer,
            "CC BY 4.0", f"{UCI}/17", {"train": 426, "test": 143},
        ),
    )
}  # fmt: skip
