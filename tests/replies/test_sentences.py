"""Sentences that state a verdict in the words of eight tasks, and sentences that hold the same words and state none."""

import pytest

from tests.replies.asked import PROMPTS

SUBJECTS = {"correct": "answer", "true": "statement", "accurate": "statement", "supported": "claim"}
LABELS = {
    "consistent": ("consistent", "inconsistent", "not consistent"),
    "faithful": ("faithful", "unfaithful", "not faithful"),
    "correct": ("correct", "incorrect", "not correct"),
    "accurate": ("accurate", "inaccurate", "not accurate"),
    "true": ("true", "false", "not true"),
    "grounded": ("grounded", "not grounded", "ungrounded"),
    "supported": ("supported", "not supported", "unsupported"),
    "factual": ("factual", "non-factual", "not factual"),
}
NOUNS = {"contradiction": "contradiction", "hallucination": "hallucination", "factual-errors": "factual error"}

STATES = """\
The {S} is {L}.
The {S} is {L} because it gives the same date.
This {S} is {L}.
That {S} is {L}, as the text says so.
Overall, this {S} is {L}.
Overall, the {S} is {L} with respect to the source.
Based on my analysis, the {S} is {L}.
Based on the above, I conclude that the {S} is {L}.
I would say that the {S} is {L}.
I'd say the {S} is {L}.
I would classify this {S} as {L}.
I'd label the {S} {L}.
I'd call this {S} {L}.
I rate this {S} as {L}.
I deem the {S} {L}.
I consider the {S} to be {L}.
We can conclude that the {S} is {L}.
It can be concluded that the {S} is {L}.
It is safe to say that the {S} is {L}.
From this it follows that the {S} is {L}.
This means the {S} is {L}.
This makes the {S} {L}.
This indicates that the {S} is {L}.
This shows that the {S} is {L}.
Hence the {S} can be considered {L}.
Thus, the {S} must be judged {L}.
The {S} should be considered {L}.
The {S} should be labeled as {L}.
The {S} was found to be {L}.
The {S} is deemed {L}.
The {S} turns out to be {L}.
The {S} proves to be {L}.
In this case, the {S} is {L}.
Here, the {S} is {L}.
Given these facts, the {S} is {L}.
As a result, the {S} is {L}.
Since all dates were checked, the {S} is {L}.
Because of this, the {S} is {L}.
For these reasons, the {S} is {L}.
For this reason, I judge it {L}.
So it is {L}.
So it's {L}.
It is {L}.
Therefore {L}.
Therefore, it is {L}.
Answer: the {S} is {L}.
The answer is that the {S} is {L}.
The answer is {L}.
My answer is: {L}.
My conclusion is that the {S} is {L}.
My final assessment is that the {S} is {L}.
In my opinion, the {S} is {L}.
In my view, this {S} is {L}.
To me the {S} is {L}.
I believe that the {S} is {L}.
I think the {S} is {L}.
I am confident that the {S} is {L}.
I'm convinced the {S} is {L}.
Clearly, the {S} is {L}.
Evidently the {S} is {L}.
As you can see, the {S} is {L}.
After checking every date, the {S} is {L}.
Verdict: the {S} is {L}.
Verdict: {L}. The date was checked.
Verdict: {L} (the date was checked)
Verdict: {L} - the date was checked
Judgment: {L}
Assessment: {L}
Evaluation: {L}
Evaluation result: {L}
Status: {L}
Rating: {L}
Category: {L}
Classification: {L}
Prediction: {L}
Grade: {L}
Determination: {L}
Fact check: {L}
Final evaluation: The {S} is {L}.
Conclusion: The {S} is {L}.
Conclusion: This {S} is {L} as it gives the same date.
**Conclusion**: The {S} is **{L}**.
### Conclusion/n/The {S} is {L}.
### Final Answer/n/{L}
**Final Answer**/n//n/**{L}**
{L}
{L}.
{L}: the date was checked.
{L} - the date was checked.
{L}, because the date was checked.
{L} because the date was checked.
{L} (the date was checked)
{L}/n/The date was checked.
{L}/n//n/Reason: the date was checked.
{L}/n//n/**Explanation:** The date was checked.
**{L}**. The date was checked.
The date was checked. {L}.
The date was checked. Therefore, the {S} is {L}.
The date was checked, so the {S} is {L}.
The date was checked, and so the {S} is {L}.
The date was checked, which makes the {S} {L}.
The date was checked, which means that the {S} is {L}.
The date was checked; therefore the {S} is {L}.
The date was checked; it is {L}.
The date was checked and the {S} is {L}.
The date was checked, making it {L}.
The date was checked, hence {L}.
The date was checked => {L}
The {S} says May, and the text says May too, so it is {L}.
The {S} that the mill burned down is {L}.
The {S} "The mill burned down." is {L}.
The {S} about the mill is {L}.
The {S} given above is {L}.
The given {S} is {L}.
The provided {S} is {L} with the provided text.
The {S} in question is {L}.
The generated {S} is {L}.
The model's {S} is {L}.
All the statements in the {S} are {L}.
Yes, the {S} is {L}.
"""
"""What is said of the claim, with each label."""

NONE_OF_IT = """\
There is no {n}.
There is no {n} here.
There are no {n}s.
There are no {n}s between the two.
There aren't any {n}s.
I see no {n}.
I found no {n}s.
I did not find any {n}s.
I couldn't find any {n}.
I can't find any {n}s in the text.
I could not identify any {n}s.
No {n}s were found.
No {n} was detected.
No {n} detected.
No {n}s.
No {n}
The text does not contain any {n}s.
The text doesn't have any {n}s.
The text contains no {n}s.
The text has no {n}.
The text is free of {n}s.
The text is {n}-free.
The text shows no {n}s.
The text shows no sign of {n}s.
The text shows no evidence of any {n}.
The text is without {n}s.
There is nothing that would be a {n}.
Zero {n}s.
Zero {n}s found.
0 {n}s found.
None of the sentences contains a {n}.
Not a single {n} was found.
There were no {n}s to report.
There does not exist a {n}.
This is not a {n}.
It's not a {n}.
It has no {n}s.
No, there is no {n}.
No, there are no {n}s in the text.
No, I don't see a {n}.
The number of {n}s is zero.
Number of {n}s: 0
{N}: none
{N}s: None
{N}: no
Final verdict: no {n}
Verdict: no {n}s found
"""

SOME_OF_IT = """\
There is a {n}.
There is a {n} in the second sentence.
There are {n}s.
There are two {n}s between the texts.
I see a {n}.
I found {n}s.
I found one {n}.
I identified two {n}s.
A {n} was found.
{N}s were detected.
{N} detected.
{N} found.
{N}.
{N}: yes
{N}s: 2
Number of {n}s: 3
One {n} was found.
The text contains a {n}.
The text contains {n}s.
The text contains several {n}s.
The text has a {n}.
The text has three {n}s.
The text includes a {n} about the date.
The text shows a {n}.
The text shows signs of {n}.
The text is a {n}.
The text exhibits {n}s.
The text introduces a {n}.
The text makes a {n}.
The last sentence is a {n}.
The last sentence contains a {n}.
This is a {n}.
This is a clear {n}.
That's a {n}.
This constitutes a {n}.
This amounts to a {n}.
This represents a {n}.
This would be a {n}.
This counts as a {n}.
It has a {n}.
Yes, there is a {n}.
Yes, there are {n}s.
Yes, I see a {n}.
Yes, the text contains {n}s.
Therefore, a {n} exists.
Hence, we have a {n}.
So we have a {n} here.
Final verdict: a {n}
Verdict: {n}
"""

SCORES = """\
{k}
{k}.
{k}/{h}
{k} / {h}
{k} out of {h}
Score: {k}
**Score**: {k}
**Score: {k}**
Score: **{k}**
Score: {k}/{h}
Score: [{k}]
Score: <{k}>
Score ({k})
Score - {k}
Score is {k}.
The score is {k}.
The score would be {k}.
The score should be {k}.
The score: {k}
Final score: {k}
Final Score = {k}
Total score: {k}
Overall score: {k}
Overall: {k}
Overall: {k}/{h}
Overall rating: {k}
Rating: {k}
My rating: {k}
My rating is {k}.
My rating is {k} out of {h}.
My score for this is {k}.
I rate this {k}.
I rate it {k}/{h}.
I rate it a {k}.
I would rate it a {k}.
I would rate the summary {k}.
I would rate the summary as a {k}.
I'd rate this summary at {k} out of {h}.
I would give it a {k}.
I'd give it {k}.
I would give this summary a score of {k}.
I give it {k} points.
I would score this summary {k}.
I'd score it {k} out of {h}.
I'd go with {k}.
I'll go with a {k}.
I'm going with {k}.
I will assign a score of {k}.
I assign {k}.
I settle on {k}.
I choose {k}.
I pick {k}.
I'd say {k}.
I would say {k} out of {h}.
I would say it's a {k}.
It's a {k}.
It is a {k} for me.
It deserves a {k}.
It gets a {k}.
It gets {k} points.
It receives a score of {k}.
This earns it a {k}.
This summary scores {k}.
This summary scores a {k} out of {h}.
This warrants a {k}.
This merits a {k}.
So {k}.
So, {k}.
So a {k}.
So the score is {k}.
Therefore, {k}.
Therefore the score is {k}.
Therefore I give it {k}.
Thus, a score of {k} is appropriate.
A score of {k} seems right.
A {k} is appropriate.
A rating of {k}.
Hence: {k}
Answer: {k}
The answer is {k}.
My answer is {k}.
Final answer: {k}
Result: {k}
Grade: {k}
Mark: {k}
Points: {k}
Evaluation: {k}
Evaluation score: {k}
Quality: {k}
Coherence: {k}
Coherence - {k}
Coherence score: {k}
- Coherence: {k}
- Coherence (1-{h}): {k}
* Consistency: {k}
Faithfulness: {k}/{h}
[[{k}]]
Rating: [[{k}]]
[{k}]
({k})
"{k}"
**{k}**
`{k}`
#### {k}
### Score: {k}
## Rating/n/{k}
## Rating/n//n/**{k}/{h}**
\\boxed{{{k}}}
The final answer is $\\boxed{{{k}}}$.
<score>{k}</score>
<rating>{k}</rating>
<answer>{k}</answer>
<final_score>{k}</final_score>
[RESULT] {k}
[SCORE] {k}
[RESULT]: {k}
{{"score": {k}}}
{{"score": "{k}"}}
{{"score": "{k}/{h}"}}
{{"rating": {k}}}
{{"Score": {k}, "Explanation": "It is short."}}
{{"explanation": "It is short.", "score": {k}}}
{{"consistency": {k}}}
```json/n/{{"score": {k}}}/n/```
{k} - it is short.
{k}: it is short.
{k}, because it is short.
{k} because it is short.
{k} (it is short)
{k}/n/It is short.
{k}/n//n/Explanation: It is short.
{k}. It is short.
{k} points
{k} point(s)
Score: {k}/n/Reason: It is short.
Score: {k}. It is short.
Score: {k} (it is short)
Score: {k} - it is short.
Score: {k}, as it is short.
Reason: It is short./n/Score: {k}
It is short./n//n/{k}
It is short. {k}
It is short. {k}/{h}
It is short. Score: {k}
It is short, so {k}.
It is short, so I give it a {k}.
It is short, thus {k} out of {h}.
It is short, hence a score of {k}.
It is short. Hence the score is {k}/{h}.
On a scale of 1 to {h}, I would rate it {k}.
On a scale from 1 to {h}, it is a {k}.
On a scale of 1-{h}, this is a {k}.
On a scale of 1-{h}: {k}
I would rate it {k} on a scale of 1 to {h}.
I would rate it {k} on a scale from 1 to {h}, where {h} is best.
I rate it as a {k} on the 1-{h} scale.
The rating for this is {k} out of a possible {h}.
A solid {k}.
A solid {k} out of {h}.
Solid {k}/{h}.
"""
"""A score k of a scale up to h."""

HEDGES = """\
According to the author, the {S} is {L}.
The {S} may be {L}.
The {S} might be {L}.
The {S} could be {L}.
The {S} could be considered {L}.
The {S} would be {L} if the date were right.
The {S} would be {L} in that case.
The {S} is probably {L}.
The {S} is possibly {L}.
The {S} is perhaps {L}.
The {S} is arguably {L}.
The {S} is likely {L}.
The {S} is most likely {L}.
The {S} is apparently {L}.
The {S} is partly {L}.
The {S} is partially {L}.
The {S} is mostly {L}.
The {S} is largely {L}.
The {S} is somewhat {L}.
The {S} is almost {L}.
The {S} is nearly {L}.
The {S} is {L} in part.
The {S} is {L} to some extent.
The {S} is {L} to a degree.
The {S} is {L}, I guess.
The {S} is {L}, I suppose.
The {S} is {L}, maybe.
The {S} is {L}, but I'm not sure.
The {S} is {L}, but I can't be certain.
The {S} is {L}, though I am not certain.
The {S} is {L}, although I could be wrong.
The {S} is {L}, I could be wrong.
The {S} is {L}. But I am not sure.
The {S} is {L}. Then again, I might be wrong.
The {S} is {L} or {M}.
The {S} is {L}? Hard to say.
Is the {S} {L}?
Is the {S} {L} or {M}?
Whether the {S} is {L} is unclear.
Whether the {S} is {L} cannot be determined.
It is unclear whether the {S} is {L}.
It is hard to say whether the {S} is {L}.
It is hard to say if the {S} is {L}.
It's difficult to tell if the {S} is {L}.
It is possible that the {S} is {L}.
It is not certain that the {S} is {L}.
It remains to be seen whether the {S} is {L}.
It depends on whether the {S} is {L}.
I cannot say whether the {S} is {L}.
I can't tell if the {S} is {L}.
I can't determine that the {S} is {L}.
I don't know if the {S} is {L}.
I do not know whether the {S} is {L}.
I'm not sure the {S} is {L}.
I'm not sure that the {S} is {L}.
I am unsure whether the {S} is {L}.
I doubt that the {S} is {L}.
I wonder if the {S} is {L}.
I am inclined to say {L}.
I lean towards {L}.
I'm leaning toward {L}.
My guess would be {L}.
My best guess is {L}.
If I had to guess, I'd say {L}.
If forced to choose, I'd say {L}.
Perhaps {L}.
Maybe {L}.
Probably {L}.
Possibly {L}.
Likely {L}.
{L}?
{L}, perhaps.
{L}, maybe.
{L}, probably.
{L} or {M}.
{L}/{M}
{L} / {M}
Either {L} or {M}.
Neither {L} nor {M}.
Not sure: {L}?
Some say it is {L}.
Some would say the {S} is {L}.
One could argue that the {S} is {L}.
One might say that the {S} is {L}.
It can be argued that the {S} is {L}.
It has been claimed that the {S} is {L}.
The author says the {S} is {L}.
The article claims that the {S} is {L}.
Critics call the {S} {L}.
A {S} is {L} if it adds nothing.
A {S} is {L} when it adds nothing.
A {L} {S} adds nothing.
For the {S} to be {L}, it must add nothing.
To be {L}, the {S} must add nothing.
In order to be {L}, the {S} must add nothing.
To check whether the {S} is {L}, compare the dates.
The task is to decide if the {S} is {L}.
I will check if the {S} is {L}.
Let us see if the {S} is {L}.
Let's determine whether the {S} is {L} or {M}.
Please tell me if the {S} is {L}.
You asked me whether the {S} is {L}.
The question is whether the {S} is {L}.
Suppose the {S} is {L}.
Assume that the {S} is {L}.
Assuming the date is right, the {S} is {L}.
If the date is right, the {S} is {L}.
Unless I am mistaken, the {S} is {L}.
Unless the date is wrong, the {S} is {L}.
Provided the date is right, the {S} is {L}.
The {S} seems {L}.
The {S} seems to be {L}.
The {S} appears to be {L}.
The {S} looks {L}.
The {S} sounds {L}.
The {S} is {L}. Or is it?
The {S} is {L}. Actually, the {S} is {M}.
The {S} is {L}. No, wait, the {S} is {M}.
The {S} is {L}. On the other hand, the {S} is {M}.
The {S} is {L} and {M}.
The {S} is both {L} and {M}.
The {S} is neither {L} nor {M}.
The {S} is {L} in one sense and {M} in another.
The {S} is {L} for the date but {M} for the name.
The {S} is more {L} than not.
The {S} is as {L} as can be expected.
The {S} is less {L} than it could be.
The {S} is not entirely {L}, nor is it {M}.
The {S} tries to be {L}.
The {S} is supposed to be {L}.
The {S} should be {L}.
The {S} was meant to be {L}.
The {S} needs to be {L}.
The {S} claims to be {L}.
There is a chance that the {S} is {L}.
There is no way to tell if the {S} is {L}.
There is not enough information to say that the {S} is {L}.
There is insufficient information to decide whether the {S} is {L}.
Without the source, I cannot say that the {S} is {L}.
I need more context to say the {S} is {L}.
I have no opinion on whether the {S} is {L}.
Nobody can say if the {S} is {L}.
The prompt says: "Answer {L} or {M}."
Answer with {L} or {M}.
Options: {L}, {M}
Labels: {L}, {M}.
The possible labels are {L} and {M}.
I'm sorry, but I can't say whether the {S} is {L}.
As an AI, I cannot judge if the {S} is {L}.
Confidence that the {S} is {L}: 50%.
There's a 60% chance that the {S} is {L}.
"""
"""Doubt, choices, conditions, questions, tasks, what others say, and standards: no verdict in any."""


def lines_of(text):
    """Return the lines, with line breaks where they are spelled."""
    return [line.replace("/n/", "\n") for line in text.splitlines()]


def vote_of(name, text):
    """Return the vote or the score that is read; None where there is none."""
    judgment = PROMPTS[name].parse(text)
    return None if judgment.vote == -1 else judgment.vote if judgment.score is None else judgment.score


def spelled(form, name, label):
    """Return a sentence about what a task speaks of."""
    begins = label.capitalize() if form.startswith("{L}") else label
    said = form.replace("Yes", "No") if label != LABELS[name][0] else form
    return said.format(S=SUBJECTS.get(name, "summary"), L=begins)


@pytest.mark.parametrize("form", lines_of(STATES))
def test_a_sentence_states_its_label(form):
    """Eight tasks, three labels each."""
    for name, labels in LABELS.items():
        said = [vote_of(name, spelled(form, name, label)) for label in labels]
        assert said == [1, 0, 0], (name, form)


@pytest.mark.parametrize("form", lines_of(HEDGES))
def test_a_hedge_states_none(form):
    """Either label, in each task."""
    for name, (label, other, _) in LABELS.items():
        for one, two in ((label, other), (other, label)):
            text = form.format(S=SUBJECTS.get(name, "summary"), L=one, M=two)
            assert vote_of(name, text[0].upper() + text[1:]) is None, text


@pytest.mark.parametrize(("forms", "vote"), [(NONE_OF_IT, 1), (SOME_OF_IT, 0)])
@pytest.mark.parametrize("name", NOUNS)
def test_a_fault_is_there_or_is_not(name, forms, vote):
    """Contradictions, hallucinations, errors: found, counted and denied."""
    noun = NOUNS[name]
    for form in lines_of(forms):
        text = form.format(n=noun, N=noun.capitalize())
        assert vote_of(name, text) == vote, text


@pytest.mark.parametrize("form", lines_of(SCORES))
def test_a_score_is_given(form):
    """Three scores on two scales."""
    for name, high in (("1-5", 5), ("1-10", 10)):
        for score in (2, 4, 5):
            text = form.format(k=score, h=high)
            assert vote_of(name, text) == pytest.approx((score - 1) / (high - 1)), text
