"""FECT's steps for people: decompose, decouple, detach (arXiv:2508.00889, section 2.2), in our own words."""

__all__ = ["WORKSHEET"]

WORKSHEET = """\
# Is this claim factual? A worksheet

One sheet an annotator and claim. Work alone; compare afterwards. You judge whether the conversation bears the claim
out, not whether the claim is interesting, complete or well put.

## Decompose

Write down the smallest pieces of information in the claim: every thing, every property, every connection.
"The guest left early because of the noisy room": guest; left; early; room; noisy; left because of the room.

    pieces: ______________________________________________________________________

## Decouple

Sort the pieces, and check each sort by its own measure. Mark 1 where all of a sort hold, 0 where one does not,
and leave the cell empty where the claim has none of that sort.

Step 1, concrete: words that name people, things, places, events (guest, room).
    Look for a mention, or for something that plainly means the same.
    concrete: 1 / 0 / empty     where in the conversation: ____________________________

Step 2, descriptive: words that describe those things (noisy, early).
    What is said, or what follows from it, must fit the description.
    descriptive: 1 / 0 / empty  where in the conversation: ____________________________

Step 3, interpretive: words that read feelings, attitudes, wishes or choices into what people say (annoyed, preferred).
    There must be a sign of it: particular words that somebody spoke. A sign may be indirect; a guess is no sign.
    interpretive: 1 / 0 / empty where in the conversation: ____________________________

## Detach

Step 4, relation: forget what the pieces mean, and look only at how they hang together: who did what to whom, why, how.
    The connection must be said, or be the natural reading of what somebody says or does.
    relation: 1 / 0 / empty     where in the conversation: ____________________________

## Conclude

    label: 1 (factual) if no step is 0; 0 (not factual) if any is

Could a sensible colleague decide otherwise, because nothing in the conversation settles it and each of you would have
to assume something? Then say what the assumption is about, whichever label you gave:

    ambiguous: sentiment (what somebody feels or wants) / relation (what is connected with what, or why) / empty

## Hand in

A CSV file (UTF-8), one row an item and annotator, with the columns

    item_id, annotator, label, concrete, descriptive, interpretive, relation, ambiguous

`deep annotate agreement FILE` reads it. Only the first three columns are required; an empty cell is no answer.
"""
