"""Sentences of chapter 14, and its one long sweep: python book/_data/minilm.py

Every head and every layer of the model is silenced in turn, and sixty sentences are
embedded without it. About a minute on one core; `minilm.json` holds what came out.
`minilm_reference.json` is an excerpt of what the tests compare with, and
`minilm_it.json` holds the weights of "it" that chapter 6 shows.
"""

import json
import runpy
import sys
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parents[1]))

import pretrained

STORE = Path(__file__).with_suffix(".json")
EXCERPT = Path(__file__).with_name("minilm_reference.json")
IT = Path(__file__).with_name("minilm_it.json")
REFERENCE = Path(__file__).parents[2] / "tests" / "fixtures" / "minilm.py"
EVERY = 32  # of 384 numbers the page compares twelve

# Ordinary sentences, for asking what heads look at.
SENTENCES = """\
The old bridge across the river was closed for repairs last winter.
She put the kettle on and opened the window to let in some air.
Our train leaves at nine, so we should be at the station by half past eight.
Nobody in the office knew how the printer worked.
When the rain stopped, the children ran out into the garden.
A small boat drifted slowly towards the harbour wall.
The committee will publish its report before the end of the month.
He had forgotten to lock the door again.
Fresh bread smells better than anything else in the morning.
The museum keeps its oldest maps in a dark, dry room.
If you press the red button, the machine will stop at once.
They planted three apple trees behind the barn.
The price of copper fell sharply on Tuesday.
I cannot remember the name of that song.
Snow covered the road, and the bus was two hours late.
My sister teaches chemistry at a school in the north.
The lamp flickered twice and then went out.
Most of the visitors came by bicycle.
It is easier to break a promise than to keep one.
The doctor asked him to come back in two weeks.""".splitlines()

# A sentence, the same in other words, and other things in the same words.
TRIPLES = [
    (
        "The dog chased the cat up the tree.",
        "A cat fled up a tree from a hound.",
        "The cat chased the dog up the tree.",
    ),
    (
        "How can I change my password?",
        "What is the way to reset my login secret?",
        "How did the password change the company?",
    ),
    (
        "The train to Berlin was delayed by an hour.",
        "Passengers for Berlin had to wait sixty minutes longer.",
        "The train from Berlin arrived an hour early.",
    ),
    (
        "She opened an account at the bank.",
        "She became a customer of a financial institution.",
        "She opened a picnic basket on the river bank.",
    ),
    (
        "Rain is expected tomorrow afternoon.",
        "The forecast predicts showers for tomorrow.",
        "Nobody expected the train tomorrow afternoon.",
    ),
    (
        "The chef added too much salt to the soup.",
        "The cook made the broth far too salty.",
        "The chef added the soup to the menu.",
    ),
    (
        "He plays the piano every evening.",
        "Each night he practises on his keyboard instrument.",
        "He sold the piano one evening.",
    ),
    (
        "The stock market fell sharply on Monday.",
        "Share prices dropped a lot at the start of the week.",
        "The market opened its stalls on Monday.",
    ),
    (
        "My phone battery runs out too quickly.",
        "The charge of my mobile does not last long.",
        "My phone fell and I ran out quickly.",
    ),
    (
        "The teacher praised the student for her essay.",
        "The pupil's text was commended by her tutor.",
        "The student criticised the teacher's essay.",
    ),
    (
        "Water boils at one hundred degrees.",
        "The boiling point of water is 100 C.",
        "Water freezes below zero degrees.",
    ),
    (
        "The film was so dull that we left early.",
        "We walked out of the boring movie.",
        "We left early to catch the film.",
    ),
    (
        "A man is cutting bread with a knife.",
        "Someone slices a loaf.",
        "A man is putting a knife on the bread.",
    ),
    (
        "The company hired fifty new engineers.",
        "Fifty technical staff were recruited by the firm.",
        "The engineers sued the company.",
    ),
    (
        "Children are playing football in the park.",
        "Kids kick a ball around on the green.",
        "Children are watching birds in the park.",
    ),
    (
        "I lost my keys somewhere in the house.",
        "I cannot find the thing that opens my door.",
        "I lost the house but kept the keys.",
    ),
    (
        "The doctor advised him to stop smoking.",
        "The physician told him to give up cigarettes.",
        "The doctor stopped smoking himself.",
    ),
    (
        "It is cheaper to travel by bus than by plane.",
        "Flying costs more than taking a coach.",
        "It is faster to travel by plane than by bus.",
    ),
    (
        "The museum is closed on Mondays.",
        "You cannot visit the gallery at the beginning of the week.",
        "The museum is open on Mondays.",
    ),
    (
        "The bridge collapsed after the flood.",
        "High water destroyed the crossing.",
        "The flood ended after the bridge was built.",
    ),
]
SIXTY = [sentence for column in zip(*TRIPLES, strict=True) for sentence in column]

# (what happened, first noun, second noun, an ending for each); "it" is one of the two.
PAIRS = [
    ("A dog ate the food", "dog", "food", "hungry", "rotten"),
    ("The spider left the web", "spider", "web", "hungry", "torn"),
    ("The cat drank the milk", "cat", "milk", "thirsty", "fresh"),
    ("The horse pulled the cart", "horse", "cart", "strong", "broken"),
    ("The animal did not cross the street", "animal", "street", "tired", "wide"),
    ("The bird left the nest", "bird", "nest", "hungry", "wet"),
    ("The robot dropped the box", "robot", "box", "clumsy", "heavy"),
    ("The ball broke the table", "ball", "table", "made of steel", "made of glass"),
    (
        "The trophy did not fit in the suitcase",
        "trophy",
        "suitcase",
        "too big",
        "too small",
    ),
    ("The lion chased the car", "lion", "car", "angry", "noisy"),
    ("The child threw away the toy", "child", "toy", "bored", "broken"),
    ("The wolf killed the sheep", "wolf", "sheep", "starving", "weak"),
    ("The company bought the house", "company", "house", "rich", "cheap"),
    ("The mouse avoided the trap", "mouse", "trap", "clever", "rusty"),
    ("The baby refused the soup", "baby", "soup", "sleepy", "cold"),
    ("The cow ate the grass", "cow", "grass", "hungry", "green"),
    ("The truck hit the wall", "truck", "wall", "fast", "invisible"),
    ("The fish ignored the bait", "fish", "bait", "full", "fake"),
    ("The team lost the match", "team", "match", "lazy", "unfair"),
    ("The monkey opened the door", "monkey", "door", "curious", "unlocked"),
    ("The bear entered the cave", "bear", "cave", "cold", "dark"),
    ("The snake left the stone", "snake", "stone", "scared", "hot"),
    ("The judge read the letter", "judge", "letter", "curious", "short"),
    ("The goat climbed the rock", "goat", "rock", "brave", "flat"),
]


def found(E):
    """Return the share of paraphrases found among twenty, and of those that win.

    `E` holds the vectors of SIXTY. A paraphrase is found if it is the nearest of all
    paraphrases. It wins if it is nearer than the sentence made of the same words.
    """
    sentence, same, other = np.split(E, 3)
    nearest = (sentence @ same.T).argmax(1)
    wins = (sentence * same).sum(1) > (sentence * other).sum(1)
    return np.mean(nearest == np.arange(len(same))), np.mean(wins)


def likeness(E, E_full):
    """Return the mean cosine between two lists of vectors of length 1."""
    return float((E * E_full).sum(-1).mean())


def cells(model):
    """Return {name: heads to silence}: each head, and each layer with all its heads."""
    layers, heads = range(model.n_layers), range(model.n_heads)
    single = {f"L{i + 1}H{r + 1}": [(i, r)] for i in layers for r in heads}
    whole = {f"L{i + 1}": [(i, r) for r in heads] for i in layers}
    return single | whole


def silence(model, heads, E_full):
    """Return how like the vectors of SIXTY stay without `heads`, and how many win."""
    E = model.without_heads(heads).embed(SIXTY)
    return [round(likeness(E, E_full), 4), round(float(found(E)[1]), 2)]


def excerpt():
    """Return sentences and every 32nd number of their vectors by another program."""
    sentences = runpy.run_path(str(REFERENCE))["SENTENCES"]
    vectors = np.load(REFERENCE.with_suffix(".npz"))["embeddings"][:, ::EVERY]
    columns = {"columns": list(range(0, 384, EVERY))}
    return columns | dict(zip(sentences, vectors.tolist(), strict=True))


def weights_of_it(model, layer=4):
    """Return the weights of "it" in each head of a layer, for three last words."""
    table = {}
    for end in ("hungry", "tasty", "rotten"):
        said = f"A dog ate the food because it was {end}."
        words = model.tokenize(said).words
        _, A = model.run(said, return_weights=True)
        table[end] = words
        for r, rows in enumerate(A[layer - 1], 1):  # (heads, queries, keys)
            row = rows[words.index("it")].tolist()
            table[f"{end}, head {r}"] = [round(weight, 4) for weight in row]
    return table


def text_of(table):
    """Return the table as JSON with one row a line."""
    rows = [f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in table.items()]
    return "{\n" + ",\n".join(rows) + "\n}\n"


def main():
    EXCERPT.write_text(text_of(excerpt()), encoding="utf-8", newline="\n")
    model = pretrained.load()
    IT.write_text(text_of(weights_of_it(model)), encoding="utf-8", newline="\n")
    E_full = model.embed(SIXTY)
    table = {name: silence(model, h, E_full) for name, h in cells(model).items()}
    STORE.write_text(text_of(table), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
