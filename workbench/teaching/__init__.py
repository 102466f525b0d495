"""The checkers of the class in `notebooks/class`: one module for each lesson, one function for each exercise.

A function takes the student's answer and the data of the lesson, computes the truth from them, and says whether the answer
is right, with a hint if it is not. So no notebook contains an answer, and other data give other answers. They live in the
package, not beside the notebooks, since people work on copies of these.

>>> import workbench as wb
>>> from workbench.teaching import promises as check
>>> field = wb.synthetic.gaussian_field((64, 64), seed=1)
>>> check.same_promise(1e-3, field, share=1e-3).right
False
>>> check.same_promise(1e-3 * float(field.values.max() - field.values.min()), field, share=1e-3).right
True
"""

from workbench.teaching import analysis, clusters, limits, promises, science
from workbench.teaching.delivery import Delivery, deliveries
from workbench.teaching.question import Question
from workbench.teaching.verdict import Verdict

__all__ = ["Delivery", "Question", "Verdict", "analysis", "clusters", "deliveries", "limits", "promises", "science"]
