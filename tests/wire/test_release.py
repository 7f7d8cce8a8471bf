"""The version: of a release, of a work tree, and wherever setlistd shows it; and the archive of a release."""
import hashlib
import os
import re
import shutil

from harness import OPTIONS, run_program, setlistd
from stored import stats
from test_admin_port import AdminCase
from test_daemon import Scratch
from wire import Conn

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
IDENTITY = {f"GIT_{who}_{what}": "setlistd@localhost" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


def run(*command, cwd=None):
    done = run_program(*command, cwd=cwd, env=dict(os.environ, **IDENTITY))
    if done.returncode:
        raise AssertionError(done)
    return done.stdout.strip()


class Said(AdminCase):
    smoke = True

    def test_everywhere(self):
        """The version is the same everywhere."""
        said = setlistd("-V").stdout.strip().removeprefix("setlistd ")
        self.assertRegex(said, r"\A\d+\.\d+\.\d+(~dev(\+g[0-9a-f]{8})?)?\Z")
        self.start()
        self.assertEqual(self.stats()["version"], said)
        self.assertEqual([name for name in self.metrics() if f'{{version="{said}",' in name], [name for name in self.metrics() if "{version=" in name])
        with Conn(self.proxy.port) as conn:
            self.assertEqual(stats(conn)["setlistd_version"], said)
        self.assertIn(f"setlistd {said} started:", self.proxy.process.stderr())


class Source(Scratch):
    smoke = True

    def setUp(self):
        super().setUp()
        if not shutil.which("git"):
            self.skipTest("git is not installed")
        os.mkdir(self.path("scripts"))
        shutil.copy(os.path.join(TOP, "scripts/version"), self.path("scripts"))
        self.file("AC_INIT([setlistd], [7.1.0])\n", "configure.ac")

    def version(self):
        return run(self.path("scripts/version"))

    def commit(self, folder):
        run("git", "init", "-q", cwd=folder)
        run("git", "add", ".", cwd=folder)
        run("git", "commit", "-qm", "all", cwd=folder)
        return run("git", "rev-parse", "--short=8", "HEAD", cwd=folder)

    def test_release(self):
        self.assertEqual(self.version(), "7.1.0")

    def test_work_tree(self):
        self.assertEqual(self.version(), "7.1.0")
        head = self.commit(self.folder)
        self.assertEqual(self.version(), f"7.1.0~dev+g{head}")
        if shutil.which("dpkg"):
            run("dpkg", "--compare-versions", self.version(), "lt", "7.1.0")
            run("dpkg", "--compare-versions", self.version(), "gt", "7.0.9")

    def test_work_tree_without_git(self):
        """No release is made of it, though the commit is not known."""
        self.file("gitdir: /nowhere\n", ".git")
        self.assertEqual(self.version(), "7.1.0~dev")

    def test_copy(self):
        """One that scripts/deb has made."""
        self.file("7.1.0~dev+g01234567\n", ".version")
        self.assertEqual(self.version(), "7.1.0~dev+g01234567")

    def test_archive(self):
        """It has all files of the work tree, and configure. It is the release, and is reproducible."""
        shutil.copy(os.path.join(TOP, "scripts/dist"), self.path("scripts"))
        self.file("#!/bin/sh\n", "configure")
        self.file("configure\nbuild\n", ".gitignore")
        self.commit(self.folder)
        self.file("not known to git", "left")
        archives = []
        for _ in range(2):
            made = run(self.path("scripts/dist")).split()
            self.assertEqual([os.path.basename(path) for path in made], ["setlistd-7.1.0.tar.gz", "setlistd-7.1.0.tar.gz.sha256"])
            with open(made[0], "rb") as file:
                archives.append(file.read())
            run("sha256sum", "-c", made[1], cwd=self.path("build"))
            with open(self.path("configure"), "a", encoding="utf-8"):
                os.utime(self.path("configure"))
        self.assertEqual(*[hashlib.sha256(archive).hexdigest() for archive in archives])
        run("tar", "-xzf", made[0], cwd=self.path("build"))
        unpacked = self.path("build/setlistd-7.1.0")
        self.assertEqual(sorted(os.listdir(unpacked)), [".gitignore", "configure", "configure.ac", "scripts"])
        self.assertEqual(run(os.path.join(unpacked, "scripts/version")), "7.1.0")


class Built(Scratch):
    smoke = True
    plain = True

    def test_of_this_source(self):
        """The binary has the version of this source, or of an earlier commit if it was not rebuilt."""
        if not os.path.samefile(os.path.dirname(os.path.abspath(OPTIONS.setlistd)), TOP):
            self.skipTest("it was built elsewhere")
        source = run(os.path.join(TOP, "scripts/version"))
        self.assertEqual(setlistd("-V").stdout.split()[1].split("+")[0], source.split("+")[0])
