"""One entry per data set: what it is, where it comes from, how it is read and how it is verified.

The addresses are those that the hosts publish. Olivetti faces, as other libraries load them, are not offered
for ORL: they are the same photographs cut and scaled in another way, so every result would differ.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from smrmf.datasets import _readers as readers
from smrmf.datasets._fetch import RawTable, Route

UCI = "https://archive.ics.uci.edu/static/public"
DENG_CAI = "http://www.cad.zju.edu.cn/home/dengcai/Data"
COLUMBIA = "https://www.cs.columbia.edu/CAVE/databases/SLAM_coil-20_coil-100/coil-100/coil-100.zip"
ORL_COPY = (
    "https://raw.githubusercontent.com/NaimaBousnina/Watermarking-for-protected-fingerprint-authentication/"
    "c6c6d2da7ca08e6050c4d7140e44c7dab69565a3/ORL_64x64.mat"
)
FIGSHARE = "https://ndownloader.figshare.com/files"
QWONE = "http://qwone.com/~jason/20Newsgroups"
NEWS_SHA256 = "8f1b2514ca22a5ade8fbb9cfa5727df95fa587f4c87b786e15c759fa66d95610"
ISOLET_SHA256 = "aa935cc98ec22ee689aa5b2ddf1fdce074692f7016f0255f0982df133ccbab38"
CC_BY = "CC BY 4.0, as UCI lists it; cite the donors"
NOT_STATED = "none stated"


@dataclass(frozen=True)
class CatalogueEntry:
    """A data set of the catalogue.

    ``raw_shape`` is that of the table read from the source, which ``fingerprint`` identifies; ``shape`` is
    what ``load`` returns, None if not known. ``select`` picks the rows that the paper uses and ``prepare``
    comes before cleaning. ``read_folder`` reads a set that is kept as a folder of its own.
    """

    name: str
    paper_name: str | None
    raw_shape: tuple[int, int]
    shape: tuple[int, int] | None
    n_classes: int
    source: str
    licence: str
    fingerprint: str | None
    routes: tuple[Route, ...] = ()
    select: Callable[[Any, np.ndarray], RawTable] | None = None
    prepare: Callable[[Any], Any] | None = None
    read_folder: Callable[[Path], RawTable] | None = None


def first_two_hundred_per_class(X: np.ndarray, y: np.ndarray) -> RawTable:
    """Keep the first two hundred rows of every class, in order."""
    # Sorted, to keep the order of the file: first_of_each_class goes class by class.
    kept = np.sort(readers.first_of_each_class(y, 200))
    return X[kept], y[kept]


def uci(number: int, archive: str, member: str, **how: Any) -> tuple[Route, ...]:
    """Return the route to a text file in one of UCI's archives."""
    return (Route(f"{UCI}/{number}/{archive}.zip", partial(readers.read_text, member=member, **how)),)


CATALOGUE = (
    CatalogueEntry(
        "wave",
        "Wave",
        (5000, 21),
        (600, 21),
        3,
        "UCI 107, Waveform Database Generator (version 1)",
        CC_BY,
        "488a41b7893cc44dcde9279b410188cd0dbbb5c923b92101ae4ae4067a2c854a",
        uci(107, "waveform+database+generator+version+1", "waveform.data"),
        select=first_two_hundred_per_class,
    ),
    CatalogueEntry(
        "ionosphere",
        "Ionosphere",
        (351, 34),
        (350, 33),
        2,
        "UCI 52, Ionosphere",
        CC_BY,
        "ee8466a936554b263a72f8b99009daf7341b36c6b5572a852e6af3df724d7b75",
        uci(52, "ionosphere", "ionosphere.data"),
    ),
    CatalogueEntry(
        "sonar",
        "Sonar",
        (208, 60),
        (208, 60),
        2,
        "UCI 151, Connectionist Bench (Sonar, Mines vs. Rocks)",
        CC_BY,
        "b9cd3b31a183ae854c2d4aa28745d1ae66fcc5b5e19c202fd99c0f09c84f13bf",
        uci(151, "connectionist+bench+sonar+mines+vs+rocks", "sonar.all-data"),
    ),
    CatalogueEntry(
        "movement",
        "Movement",
        (360, 90),
        (330, 90),
        15,
        "UCI 181, Libras Movement",
        CC_BY,
        "7bdb29dd0cf95e17d213d8aed3928e663fac1d38a7c4b85bca07eff16b880806",
        uci(181, "libras+movement", "movement_libras.data"),
    ),
    CatalogueEntry(
        "musk1",
        "Musk1",
        (476, 166),
        (476, 166),
        2,
        "UCI 74, Musk (version 1)",
        CC_BY,
        "1b02fe4a13c687d1e3385267d41b8ccd91b6ee6db1cfcc30d8d4adcfe163d3d4",
        # Two columns of names, which the paper counts among its 168 dimensions (paper note 36).
        uci(74, "musk+version+1", "clean1.data", skip=2),
    ),
    CatalogueEntry(
        "mfeat-fac",
        "mfeat-fac",
        (2000, 216),
        (1994, 216),
        10,
        "UCI 72, Multiple Features",
        CC_BY,
        "aecd273f0f0eb2c4ef357d1977d50d101ad8fcdab2cda5e4a422df7edc06e118",
        uci(72, "multiple+features", "mfeat-fac", delimiter=None, split=readers.class_by_two_hundred),
    ),
    CatalogueEntry(
        "mfeat-pix",
        "mfeat-pix",
        (2000, 240),
        (1994, 240),
        10,
        "UCI 72, Multiple Features",
        CC_BY,
        "4b50308ea724ab202812b71165a81765d5aec9afe83117e83fba76d6b41af345",
        uci(72, "multiple+features", "mfeat-pix", delimiter=None, split=readers.class_by_two_hundred),
    ),
    CatalogueEntry(
        "semeion",
        "Semeion",
        (1593, 256),
        (1593, 256),
        10,
        "UCI 178, Semeion Handwritten Digit",
        CC_BY,
        "e470c3fc61c6bd421415749508bc1f31d9f8fb3022a3dc9c33ec3b1f9930cd72",
        uci(178, "semeion+handwritten+digit", "semeion.data", delimiter=None, split=readers.class_one_hot),
    ),
    CatalogueEntry(
        "isolet",
        "ISOLET",
        (1200, 617),
        (1200, 617),
        5,
        "UCI 54, ISOLET, letters A to E of the training file",
        CC_BY,
        "029da974f47f1ac2cb717012c5df8388c3b61a2babac8fc0f2ad10ac33b4339b",
        uci(54, "isolet", "isolet1+2+3+4.data", n_classes=5, sha256=ISOLET_SHA256),
    ),
    CatalogueEntry(
        "coil-5",
        "COIL-5",
        (360, 1024),
        (360, 1024),
        5,
        "Columbia COIL-100, objects 1 to 5, 32 x 32 grey values as published by Deng Cai",
        "research use",
        "b6628fc1091e55ad00e76c717106e8d22aca0a2fb99d38ed70527a15cd0c53cb",
        (
            # Routes in order of preference: the published table first, then the images that it was made of.
            Route(f"{DENG_CAI}/COIL20/COIL100.mat", partial(readers.read_mat, n_classes=5)),
            Route(COLUMBIA, partial(readers.read_coil, n_objects=5)),
        ),
    ),
    CatalogueEntry(
        "20-news",
        "20-news",
        (5020, 1816),
        (5011, 1816),
        20,
        "20 Newsgroups by date, 251 test documents per class",
        NOT_STATED,
        "ea83bc2a76cbcef66e65a0d999b9ce4198ef7be5d34a4ceb4f2f0ffec17a78c0",
        (
            Route(f"{FIGSHARE}/5975967", readers.read_news_archive, NEWS_SHA256),
            Route(f"{QWONE}/20news-bydate.tar.gz", readers.read_news_archive, NEWS_SHA256),
        ),
        # Not in the fingerprint: counts are whole numbers and equal everywhere, weights are rounded.
        prepare=readers.weigh_words,
        read_folder=readers.read_news_folder,
    ),
    CatalogueEntry(
        "orl",
        "ORL",
        (400, 4096),
        (400, 4096),
        40,
        "AT&T Laboratories Cambridge, 64 x 64 as published by Deng Cai",
        NOT_STATED,
        "21a27755b54877f829698a3dc58c144b50988c3d32459d2e38440639606f32c2",
        (Route(f"{DENG_CAI}/ORL/ORL_64x64.mat", readers.read_mat), Route(ORL_COPY, readers.read_mat)),
    ),
    CatalogueEntry(
        "ova-colon",
        "OVA_Colon",
        (1545, 10935),
        None,  # what cleaning leaves is not known, nor is the fingerprint
        2,
        "OpenML 1161, OVA_Colon",
        "see OpenML",
        None,
        (
            Route(
                "https://www.openml.org/data/download/54044/OVA_Colon.arff",
                partial(readers.read_arff, label="Tissue", row_name="ID_REF"),
            ),
        ),
    ),
    # Not one of the paper's sets: many more features than rows, like OVA_Colon, under its own name. Its
    # source is an R data file, which nothing here reads, so it has no route.
    CatalogueEntry(
        "gordon",
        None,
        (181, 12533),
        (181, 12533),
        2,
        "R package datamicroarray by J. Ramey, data/gordon.RData (Gordon et al. 2002)",
        "MIT, as the package states",
        "855a7f3fee9ec6b241117be4126beea947bea0f3a85d0ea9f12d6072b0a34333",
    ),
)
