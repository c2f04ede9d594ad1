"""The columns of the KDD census income table, from census-income.names: lists as they are there, commas between values.

Ages are top-coded at 90. Wages are in cents, in four digits; gains have five, and losses and dividends as many.
"""

from typing import Any

from limbeck.data.tables.declarations import amount, dropped, target, whole

CLASS_OF_WORKER = """Not in universe, Federal government, Local government, Never worked, Private,
Self-employed-incorporated, Self-employed-not incorporated, State government, Without pay"""
EDUCATION = """Children, 7th and 8th grade, 9th grade, 10th grade, High school graduate, 11th grade,
12th grade no diploma, 5th or 6th grade, Less than 1st grade, Bachelors degree(BA AB BS), 1st 2nd 3rd or 4th grade,
Some college but no degree, Masters degree(MA MS MEng MEd MSW MBA), Associates degree-occup /vocational,
Associates degree-academic program, Doctorate degree(PhD EdD), Prof school degree (MD DDS DVM LLB JD)"""
MARITAL_STAT = """Never married, Married-civilian spouse present, Married-spouse absent, Separated, Divorced, Widowed,
Married-A F spouse present"""
INDUSTRY = """Not in universe or children, Entertainment, Social services, Agriculture, Education,
Public administration, Manufacturing-durable goods, Manufacturing-nondurable goods, Wholesale trade, Retail trade,
Finance insurance and real estate, Private household services, Business and repair services,
Personal services except private HH, Construction, Medical except hospital, Other professional services,
Transportation, Utilities and sanitary services, Mining, Communications, Hospital services, Forestry and fisheries,
Armed Forces"""
OCCUPATION = """Not in universe, Professional specialty, Other service, Farming forestry and fishing, Sales,
Adm support including clerical, Protective services, Handlers equip cleaners etc, Precision production craft & repair,
Technicians and related support, Machine operators assmblrs & inspctrs, Transportation and material moving,
Executive admin and managerial, Private household services, Armed Forces"""
HISPANIC_ORIGIN = """Mexican (Mexicano), Mexican-American, Puerto Rican, Central or South American, All other,
Other Spanish, Chicano, Cuban, Do not know, NA"""
UNEMPLOYMENT = "Not in universe, Re-entrant, Job loser - on layoff, New entrant, Job leaver, Other job loser"
EMPLOYMENT = """Children or Armed Forces, Full-time schedules, Unemployed part- time, Not in labor force,
Unemployed full-time, PT for non-econ reasons usually FT, PT for econ reasons usually PT,
PT for econ reasons usually FT"""
TAX_FILER = "Nonfiler, Joint one under 65 & one 65+, Joint both under 65, Single, Head of household, Joint both 65+"
STATES = """Not in universe, Utah, Michigan, North Carolina, North Dakota, Virginia, Vermont, Wyoming, West Virginia,
Pennsylvania, Abroad, Oregon, California, Iowa, Florida, Arkansas, Texas, South Carolina, Arizona, Indiana, Tennessee,
Maine, Alaska, Ohio, Montana, Nebraska, Mississippi, District of Columbia, Minnesota, Illinois, Kentucky, Delaware,
Colorado, Maryland, Wisconsin, New Hampshire, Nevada, New York, Georgia, Oklahoma, New Mexico, South Dakota, Missouri,
Kansas, Connecticut, Louisiana, Alabama, Massachusetts, Idaho, New Jersey"""
FAMILY = """Child <18 never marr not in subfamily, Other Rel <18 never marr child of subfamily RP,
Other Rel <18 never marr not in subfamily, Grandchild <18 never marr child of subfamily RP,
Grandchild <18 never marr not in subfamily, Secondary individual, In group quarters,
Child under 18 of RP of unrel subfamily, RP of unrelated subfamily, Spouse of householder, Householder,
Other Rel <18 never married RP of subfamily, Grandchild <18 never marr RP of subfamily,
Child <18 never marr RP of subfamily, Child <18 ever marr not in subfamily, Other Rel <18 ever marr RP of subfamily,
Child <18 ever marr RP of subfamily, Nonfamily householder, Child <18 spouse of subfamily RP,
Other Rel <18 spouse of subfamily RP, Other Rel <18 ever marr not in subfamily,
Grandchild <18 ever marr not in subfamily, Child 18+ never marr Not in a subfamily,
Grandchild 18+ never marr not in subfamily, Child 18+ ever marr RP of subfamily,
Other Rel 18+ never marr not in subfamily, Child 18+ never marr RP of subfamily,
Other Rel 18+ ever marr RP of subfamily, Other Rel 18+ never marr RP of subfamily,
Other Rel 18+ spouse of subfamily RP, Other Rel 18+ ever marr not in subfamily,
Child 18+ ever marr Not in a subfamily, Grandchild 18+ ever marr not in subfamily, Child 18+ spouse of subfamily RP,
Spouse of RP of unrelated subfamily, Grandchild 18+ ever marr RP of subfamily,
Grandchild 18+ never marr RP of subfamily, Grandchild 18+ spouse of subfamily RP"""
HOUSEHOLD = """Child under 18 never married, Other relative of householder, Nonrelative of householder,
Spouse of householder, Householder, Child under 18 ever married, Group Quarters- Secondary individual,
Child 18 or older"""
CHANGE_IN_MSA = """Not in universe, Nonmover, MSA to MSA, NonMSA to nonMSA, MSA to nonMSA, NonMSA to MSA,
Abroad to MSA, Not identifiable, Abroad to nonMSA"""
CHANGE_IN_REGION = """Not in universe, Nonmover, Same county, Different county same state,
Different state same division, Abroad, Different region, Different division same region"""
MOVE_IN_REGION = """Not in universe, Nonmover, Same county, Different county same state, Different state in West,
Abroad, Different state in Midwest, Different state in South, Different state in Northeast"""
PARENTS = "Both parents present, Neither parent present, Mother only present, Father only present, Not in universe"
COUNTRIES = """Mexico, United-States, Puerto-Rico, Dominican-Republic, Jamaica, Cuba, Portugal, Nicaragua, Peru,
Ecuador, Guatemala, Philippines, Canada, Columbia, El-Salvador, Japan, England, Trinadad&Tobago, Honduras, Germany,
Taiwan, Outlying-U S (Guam USVI etc), India, Vietnam, China, Hong Kong, Cambodia, France, Laos, Haiti, South Korea,
Iran, Greece, Italy, Poland, Thailand, Yugoslavia, Holand-Netherlands, Ireland, Scotland, Hungary, Panama"""
CITIZENSHIP = """Native- Born in the United States, Foreign born- Not a citizen of U S,
Native- Born in Puerto Rico or U S Outlying, Native- Born abroad of American Parent(s),
Foreign born- U S citizen by naturalization"""


def census_income() -> list[dict[str, Any]]:
    gap = {"missing": "indicator"}  # what the file writes as ?
    below, above = "- 50000.", "50000+."
    no_yes = "Not in universe, Yes, No"
    return [
        whole("age", 0, 90),
        _listed("class of worker", CLASS_OF_WORKER),
        _codes("detailed industry recode", 52),
        _codes("detailed occupation recode", 47),
        _listed("education", EDUCATION),
        amount("wage per hour", 9_999),
        _listed("enroll in edu inst last wk", "Not in universe, High school, College or university"),
        _listed("marital stat", MARITAL_STAT),
        _listed("major industry code", INDUSTRY),
        _listed("major occupation code", OCCUPATION),
        _listed("race", "White, Black, Other, Amer Indian Aleut or Eskimo, Asian or Pacific Islander"),
        _listed("hispanic origin", HISPANIC_ORIGIN, **gap),
        _listed("sex", "Female, Male"),
        _listed("member of a labor union", no_yes),
        _listed("reason for unemployment", UNEMPLOYMENT),
        _listed("full or part time employment stat", EMPLOYMENT),
        *(amount(name, 99_999) for name in ("capital gains", "capital losses", "dividends from stocks")),
        _listed("tax filer stat", TAX_FILER),
        _listed("region of previous residence", "Not in universe, South, Northeast, West, Midwest, Abroad"),
        _listed("state of previous residence", STATES, **gap),
        _listed("detailed household and family stat", FAMILY),
        _listed("detailed household summary in household", HOUSEHOLD),
        dropped("instance weight"),
        _listed("migration code-change in msa", CHANGE_IN_MSA, **gap),
        _listed("migration code-change in reg", CHANGE_IN_REGION, **gap),
        _listed("migration code-move within reg", MOVE_IN_REGION, **gap),
        _listed("live in this house 1 year ago", "Not in universe under 1 year old, Yes, No"),
        _listed("migration prev res in sunbelt", no_yes, **gap),
        whole("num persons worked for employer", 0, 6),
        _listed("family members under 18", PARENTS),
        *(_listed(f"country of birth {who}", COUNTRIES, **gap) for who in ("father", "mother", "self")),
        _listed("citizenship", CITIZENSHIP),
        _codes("own business or self employed", 3),
        _listed("fill inc questionnaire for veteran's admin", no_yes),
        _codes("veterans benefits", 3),
        whole("weeks worked in year", 0, 52),
        _listed("year", "94, 95"),
        target("income", [below, above], {below: [below, "- 50000"], above: [above, "50000+"]}),
        {"name": "split", "kind": "split"},
    ]


def _listed(name: str, values: str, **options: Any) -> dict[str, Any]:
    return {"name": name, "kind": "categorical", "categories": [v.strip() for v in values.split(",")], **options}


def _codes(name: str, number: int) -> dict[str, Any]:
    """Codes 0, 1, ..., which are names and no numbers."""
    return {"name": name, "kind": "categorical", "categories": [str(i) for i in range(number)]}
