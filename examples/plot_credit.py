"""
From a model to a decision: who gets the loan
=============================================

A bank has the history of 8000 loans and a boosted model of their defaults. Before it decides by the
model it wants to know what the model does, whether it may do so, what an applicant is told, and
where to draw the line. The data are made up, and the bank does not know how: an applicant's age has
no effect on default, but young people have short employments.
"""

# %%
# The history
# -----------

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from fastpd_sklearn import FastPDExplainer
from fastpd_sklearn.decomposition import FeatureRemover, importance, reason_codes

rng = np.random.default_rng(1)
n_rows = 8000
age = rng.integers(20, 70, n_rows).astype(float)
loans = pd.DataFrame(
    {
        "age": age,
        "years employed": rng.uniform(0, 1, n_rows) * (age - 18) * 0.7,
        "income": rng.lognormal(3.5, 0.45, n_rows),
        "debt ratio": rng.beta(2, 4, n_rows),
        "late payments": rng.poisson(0.7, n_rows).astype(float),
        "purpose": rng.choice(["car", "home", "travel"], n_rows, p=[0.4, 0.4, 0.2]),
    }
)
log_odds = (
    -2.6
    + 4.0 * (loans["debt ratio"] - 0.3)
    + 1.3 * loans["late payments"] * (loans["debt ratio"] > 0.4)
    - 0.08 * loans["years employed"].clip(upper=15)
    - 0.8 * np.log(loans["income"] / 33)
    + 0.7 * (loans["purpose"] == "travel")
)
defaults = (rng.random(n_rows) < 1 / (1 + np.exp(-log_odds))).astype(int)

past, new, past_defaults, new_defaults = train_test_split(
    loans, defaults, test_size=0.4, random_state=0
)
model = make_pipeline(
    make_column_transformer((OneHotEncoder(), ["purpose"]), remainder="passthrough"),
    HistGradientBoostingClassifier(max_iter=80, max_leaf_nodes=8, learning_rate=0.08),
).fit(past, past_defaults)
auc = roc_auc_score(new_defaults, model.predict_proba(new)[:, 1])
print(f"{past_defaults.mean():.1%} of the loans defaulted; AUC on new ones {auc:.3f}")

# %%
# What does the model do?
# -----------------------
# The importance of main effects and pairs, by the functional decomposition on the scale of the log
# odds. ``purpose`` is one feature, whatever the encoder makes of it.

found = importance(model, past)
table = found.to_frame().head(6)
print(table[["term", "importance", "variance_share"]].round(3).to_string(index=False))

# %%
# Late payments matter by their own and together with debt. The joint partial dependence says how:
# late payments do harm to those who owe much.

explainer = FastPDExplainer().fit(model, past)
late = np.array([0.0, 1.0, 2.0])
ratio = np.linspace(0.1, 0.7, 121)
joint = explainer.partial_dependence(("late payments", "debt ratio"), grid=[late, ratio]).average[0]

figure, ax = plt.subplots(figsize=(7.5, 4.2), layout="constrained")
for k, colour in enumerate(["#999999", "#F0A860", "#D55E00"]):
    ax.step(ratio, joint[k], where="mid", color=colour, linewidth=2)
    ax.text(0.705, joint[k, -1], f"{late[k]:.0f} late", color=colour, va="center")
ax.set_xlim(0.1, 0.76)
ax.set_xlabel("debt ratio")
ax.set_ylabel("mean log odds of default")
ax.set_title("Late payments count for those who owe more than 40 %", loc="left")
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# May it do so?
# -------------
# The bank's policy forbids to decide by age. Age is averaged out of the fitted model: nothing that
# the model has learnt of it is left. It costs nothing.

fair = FeatureRemover(features=["age"]).fit(model, past)
fair_risk = fair.predict_proba(new)[:, 1]
print(f"AUC without age: {roc_auc_score(new_defaults, fair_risk):.3f}, with age: {auc:.3f}")
by_age = explainer.partial_dependence("age").curve.levels[0]
print(f"age had moved the log odds by up to {np.ptp(by_age):.2f}")

# %%
# Where to draw the line?
# -----------------------
# A loan that is paid back earns 6 % of its sum, one that defaults loses 40 %. Each limit on the
# risk gives a profit on the new loans. (The profit to be reported is that on loans which have had
# no say in the limit.)

limits = np.linspace(0.02, 0.5, 97)
gain = np.where(new_defaults, -0.40, 0.06)
profit = [1000 * gain[fair_risk <= limit].sum() / len(new) for limit in limits]
best = int(np.argmax(profit))
approved = np.mean(fair_risk <= limits[best])
print(
    f"best limit {limits[best]:.3f}: {approved:.0%} approved, {profit[best]:.1f} EUR an applicant"
)
print(f"everybody approved: {1000 * gain.mean():.1f} EUR an applicant")

figure, ax = plt.subplots(figsize=(7.5, 4.2), layout="constrained")
ax.plot(100 * limits, profit, color="#0072B2", linewidth=2)
ax.axhline(1000 * gain.mean(), color="grey", linewidth=1, linestyle="--")
ax.text(50, 1000 * gain.mean() + 0.4, "everybody approved", color="grey", ha="right")
ax.plot(100 * limits[best], profit[best], "o", color="#0072B2")
ax.annotate(
    f"{approved:.0%} of the applicants get their loan",
    (100 * limits[best], profit[best]),
    (100 * limits[best], profit[best] + 1),
    va="bottom",
)
ax.set_xlabel("largest risk of default that gets a loan [%]")
ax.set_ylabel("profit [EUR an applicant, loans of 1000 EUR]")
ax.set_ylim(0, 35)
ax.set_title(f"Saying no above a risk of {limits[best]:.0%} pays best", loc="left")
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# What is an applicant told?
# --------------------------
# The reasons of a refusal are the terms that raise its risk most. The terms with age, which the
# decision does without, are left out: the others add up to the log odds that it was made by.

explainer = FastPDExplainer(output="component", max_order=None).fit(model, past)
whole = explainer.explain(new)
allowed = whole.select([term for term in whole.terms if "age" not in term])
decided = allowed.base_values + allowed.sum()
print(f"log odds up to {np.abs(decided - fair.decision_function(new)).max():.0e}")

reasons = reason_codes(allowed, k=2, direction="up").to_frame()
refused = new.index[fair_risk > limits[best]][:4]
told = reasons[reasons["row"].isin(refused)]
print(told[["row", "rank", "term", "value"]].round(2).to_string(index=False))
