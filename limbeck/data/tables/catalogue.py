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

from limbeck.data.tables.census_income import census_income
from limbeck.data.tables.declarations import amount, categories, dropped, flag, number, target, whole
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
        whole("age", 17, 90),
        categories("workclass", WORKCLASS, **gap),
        whole("fnlwgt", 0, 1_500_000, scale="log"),
        categories("education", EDUCATION),
        whole("education-num", 1, 16),
        categories("marital-status", MARITAL_STATUS),
        categories("occupation", OCCUPATION, **gap),
        categories("relationship", "Wife Own-child Husband Not-in-family Other-relative Unmarried"),
        categories("race", "White Asian-Pac-Islander Amer-Indian-Eskimo Other Black"),
        categories("sex", "Female Male"),
        amount("capital-gain", 99_999),
        amount("capital-loss", 5_000),
        whole("hours-per-week", 1, 99),
        categories("native-country", NATIVE_COUNTRY, **gap),
        target("income", ["<=50K", ">50K"], {"<=50K": ["<=50K", "<=50K."], ">50K": [">50K", ">50K."]}),
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
        whole("Age", 10, 90),
        whole("Number of sexual partners", 0, 30, scale="log", **gap),
        whole("First sexual intercourse", 8, 40, **gap),
        whole("Num of pregnancies", 0, 15, **gap),
        flag("Smokes", **gap),
        number("Smokes (years)", 0, 50, scale="log", **gap),
        number("Smokes (packs/year)", 0, 50, scale="log", **gap),
        flag("Hormonal Contraceptives", **gap),
        number("Hormonal Contraceptives (years)", 0, 40, scale="log", **gap),
        flag("IUD", **gap),
        number("IUD (years)", 0, 30, scale="log", **gap),
        flag("STDs", **gap),
        whole("STDs (number)", 0, 12, scale="log", **gap),
        *(flag(f"STDs:{disease}", **gap) for disease in diseases),
        whole("STDs: Number of diagnosis", 0, 12, scale="log"),
        number("STDs: Time since first diagnosis", 0, 40, scale="log", **gap),
        number("STDs: Time since last diagnosis", 0, 40, scale="log", **gap),
        *(flag(name) for name in ("Dx:Cancer", "Dx:CIN", "Dx:HPV", "Dx")),
        *(dropped(name) for name in ("Hinselmann", "Schiller", "Cytology")),
        target("Biopsy", [0, 1]),
    ]


def _epileptic() -> list[dict[str, Any]]:
    """A second of EEG from a converter of 12 bits; a seizure against the four other states."""
    amplitudes = [whole(f"X{i}", -2048, 2047) for i in range(1, 179)]
    return [dropped("id"), *amplitudes, target("y", ["seizure", "rest"], {"seizure": [1], "rest": [2, 3, 4, 5]})]


def _isolet() -> list[dict[str, Any]]:
    """Features scaled to [-1, 1] by their authors; vowels against consonants, by the letters' numbers."""
    vowels = [1, 5, 9, 15, 21]
    groups = {"vowel": vowels, "consonant": [i for i in range(1, 27) if i not in vowels]}
    features = [number(f"f{i}", -1, 1) for i in range(1, 618)]
    vowel = target("class", ["consonant", "vowel"], groups)
    return [*features, vowel, dropped("isolet_part"), {"name": "split", "kind": "split"}]


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
        amount("duration", 100_000),
        categories("protocol_type", "icmp tcp udp"),
        categories("service", services, other="other"),
        categories("flag", "OTH REJ RSTO RSTOS0 RSTR S0 S1 S2 S3 SF SH"),
        amount("src_bytes", 2_000_000_000),
        amount("dst_bytes", 2_000_000_000),
        flag("land"),
        whole("wrong_fragment", 0, 3),
        amount("urgent", 15),
        amount("hot", 127),
        amount("num_failed_logins", 15),
        flag("logged_in"),
        amount("num_compromised", 10_000),
        flag("root_shell"),
        whole("su_attempted", 0, 2),
        amount("num_root", 10_000),
        amount("num_file_creations", 127),
        amount("num_shells", 15),
        amount("num_access_files", 15),
        amount("num_outbound_cmds", 15),
        flag("is_host_login"),
        flag("is_guest_login"),
        whole("count", 0, 511),
        whole("srv_count", 0, 511),
        *(number(f"{name}_rate", 0, 1) for name in rates),
        whole("dst_host_count", 0, 255),
        whole("dst_host_srv_count", 0, 255),
        *(number(f"dst_host_{name}_rate", 0, 1) for name in host_rates),
        target("label", list(attacks), {name: [f"{a}." for a in list_.split()] for name, list_ in attacks.items()}),
    ]


def _covtype() -> list[dict[str, Any]]:
    """The fields of covtype.info: metres, degrees and shades of places in Colorado, whose summits are below 4,500 m."""
    return [
        whole("Elevation", 1_500, 4_500),
        whole("Aspect", 0, 360),
        whole("Slope", 0, 90),
        whole("Horizontal_Distance_To_Hydrology", 0, 10_000),
        whole("Vertical_Distance_To_Hydrology", -1_000, 1_000),
        whole("Horizontal_Distance_To_Roadways", 0, 10_000),
        *(whole(f"Hillshade_{hour}", 0, 255) for hour in ("9am", "Noon", "3pm")),
        whole("Horizontal_Distance_To_Fire_Points", 0, 10_000),
        *(flag(f"Wilderness_Area{i}") for i in range(1, 5)),
        *(flag(f"Soil_Type{i}") for i in range(1, 41)),
        target("Cover_Type", list(range(1, 8))),
    ]


def _credit() -> list[dict[str, Any]]:
    """Two days of card payments in euros. Of V1 to V28 it is only said that they are principal components."""
    return [
        dropped("Time"),
        *(number(f"V{i}", -100, 100) for i in range(1, 29)),
        number("Amount", 0, 100_000, scale="log"),
        target("Class", [0, 1]),
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
        *(number(f"mean {name}", *bounds) for name, bounds in nuclei.items()),
        *(number(f"{name} error", 0, high) for name, high in zip(nuclei, errors, strict=True)),
        *(number(f"worst {name}", low, high) for name, low, high in zip(nuclei, lows, highs, strict=True)),
        target("target", [0, 1]),
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
            "census", "Census income (KDD)", ("census", "census_income", "census-income"), census_income, "CC BY 4.0",
            f"{UCI}/117", {"train": 199_523, "test": 99_762},
        ),
        KnownTable(
            "covtype", "Covertype (forest cover)", ("covtype", "covertype"), _covtype, "CC BY 4.0", f"{UCI}/31", {},
        ),
        KnownTable(
            "credit", "Credit card fraud (ULB)", ("credit", "creditcard"), _credit, "Database Contents License 1.0",
            "https://www.kaggle.com/datasets/mlg-ulb/creditcardfraud", {},
        ),
        KnownTable(
            "breast_cancer", "Breast cancer Wisconsin (the copy in scikit-learn)", ("breast_cancer",), _breast_cancer,
            "CC BY 4.0", f"{UCI}/17", {"train": 426, "test": 143},
        ),
    )
}  # fmt: skip
