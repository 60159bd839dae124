"""
Plots of shap, from exact values
================================

Explanations go into the plots of the ``shap`` package as they are: ``explanation.to_shap()``. The
values are exact over the whole of the background, and they need not come as SHAP values: those are
made of the components of the functional decomposition, too, which say how much of a feature's value
is its own and how much it shares.
"""

# %%
# Beeswarm
# --------
# A boosted classifier of tumours. The values are log odds of a benign one; every dot is a patient.

import matplotlib.pyplot as plt
import numpy as np
import shap
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import HistGradientBoostingClassifier

from fastpd_sklearn import FastPDExplainer

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
model = HistGradientBoostingClassifier(max_iter=60, max_leaf_nodes=8, random_state=0).fit(X, y)

explainer = FastPDExplainer(output="shap").fit(model, X)
explanation = explainer.explain(X).to_shap()
shap.plots.beeswarm(explanation, max_display=9, show=False)
plt.gcf().set_size_inches(8, 4.5)
plt.title("Large tumours of uneven outline are malignant", loc="left")
plt.tight_layout()
plt.show()

# %%
# Waterfall
# ---------
# The patient whose case is the closest to call. The bars start at the mean log odds of all
# patients and end at the model's answer.

margin = model.decision_function(X)
patient = int(np.abs(margin).argmin())
print(f"patient {patient}: log odds {margin[patient]:.3f}")
end = explanation.base_values[patient] + explanation.values[patient].sum()
print(f"base value and bars add up to {end:.3f}")

plt.figure()
shap.plots.waterfall(explanation[patient], max_display=8, show=False)
plt.gcf().set_size_inches(8, 4.2)
plt.title(f"Patient {patient}: reasons on both sides", loc="left")
plt.tight_layout()
plt.show()

# %%
# Scatter
# -------
# One feature, one dot a patient. Where dots of one value spread, other features have a say.

texture = explanation[:, "worst texture"]
figure, ax = plt.subplots(figsize=(7.5, 4.2), layout="constrained")
shap.plots.scatter(texture, color=explanation[:, "worst area"], ax=ax, show=False)
ax.set_title("The rougher the texture, the more it speaks for malignancy", loc="left")
plt.show()

# %%
# The same values from components
# -------------------------------
# ``output="component"`` with all orders holds more, and adds up to the same SHAP values.

components = FastPDExplainer(output="component", max_order=None).fit(model, X)
again = components.explain(X[:50]).to_shap()
difference = np.abs(again.values - explanation.values[:50]).max()
print(f"{len(components.terms_)} components; SHAP values made of them differ by {difference:.0e}")
