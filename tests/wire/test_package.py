"""Files for distributions: `make install`, the units of systemd, the files for containers, the completion of bash."""
import json
import os
import re
import shlex
import shutil
import subprocess
import sys

import yaml

from browser import Browser, find_browser
from case import marks
from harness import BUILD_LIMIT, HOST, OPTIONS, PATIENCE, free_port, run_program, setlistd, wait_until
from stored import stat
from test_daemon import Scratch

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
INSTALLED_CONF = "/etc/setlistd/setlistd.conf"
EXPOSURE_TENTHS = 20


def read(path):
    with open(os.path.join(TOP, path), encoding="utf-8") as file:
        return file.read()


def run(*command, env=None, cwd=None):
    return run_program(*command, limit=BUILD_LIMIT, cwd=cwd, env=dict(os.environ, LC_ALL="C", **(env or {})))


def files_below(folder):
    return {os.path.join(where, name)[len(folder):] for where, _, names in os.walk(folder) for name in names}


class Package(Scratch):
    compiles = True

    def accepted(self, argv, config):
        """The command line is valid for setlistd, with this configuration at its installed path."""
        path = self.file(config)
        self.assertEqual(os.path.basename(argv[0]), "setlistd")
        self.assert_good(setlistd(*[path if arg == INSTALLED_CONF else arg for arg in argv[1:]], "-T"), argv)

    def make(self, target):
        """Runs it as a distribution does. The staged files are outside of the build directory."""
        if not os.path.exists(os.path.join(TOP, "setlistd")):
            self.skipTest("make has not built setlistd")
        done = run("make", "-s", "-C", TOP, "-o", "setlistd", f"BUILD={self.path('build')}", f"DESTDIR={self.path('root')}",
                   "prefix=/usr", "sysconfdir=/etc", target)
        self.assertEqual(done.returncode, 0, done)
        return files_below(self.path("root"))


class Install(Package):
    smoke = True

    def test_what_is_installed_is_removed(self):
        installed = self.make("install")
        for name in ("/usr/sbin/setlistd", "/usr/bin/setlistd-convert", "/usr/bin/setlistd-move", "/usr/bin/setlistd-check",
                     "/usr/share/man/man1/setlistd-convert.1", "/usr/share/man/man1/setlistd-check.1",
                     "/usr/share/man/man5/setlistd.conf.5", "/usr/share/man/man8/setlistd.8", "/usr/lib/systemd/system/setlistd.service",
                     "/usr/lib/systemd/system/setlistd.socket", "/usr/share/bash-completion/completions/setlistd",
                     "/usr/share/doc/setlistd/examples/setlistd.conf", INSTALLED_CONF):
            self.assertIn(name, installed)
        modules = {f"/usr/share/setlistd/clients/{name}" for name in ("python/setlistd.py", "php/Setlistd.php", "node/setlistd.js",
                                                                       "node/setlistd.d.ts", "go/setlistd.go")}
        self.assertEqual({name for name in installed if "/clients/" in name}, modules)
        self.file("not ours", "root/usr/share/man/man8/other.8")
        self.assertEqual(self.make("uninstall"), {"/usr/share/man/man8/other.8"})
        folders = {name for _, names, _ in os.walk(self.path("root")) for name in names}
        self.assertNotIn("setlistd", folders)

    @marks(smoke=False)
    def test_a_changed_configuration_stays(self):
        self.make("install")
        changed = 'servers = {"10.0.0.1:11211"}\n'
        path = self.file(changed, f"root{INSTALLED_CONF}")
        self.make("install")
        self.assertEqual(read(path), changed)
        self.assertEqual(self.make("uninstall"), {INSTALLED_CONF})

    def test_the_installed_programs_run(self):
        self.make("install")
        for name, option in ("setlistd-convert", "--from-prefix"), ("setlistd-move", "--rate"), ("setlistd-check", "--repair"):
            done = run(sys.executable, self.path(f"root/usr/bin/{name}"), "--help")
            self.assertEqual(done.returncode, 0, done)
            self.assertIn(option, done.stdout)


class Missing(Package):
    """A target whose packages are not installed names the `scripts/deps` that installs them."""

    def path_without(self, *names):
        """A folder of all programs but these."""
        folder = self.path("bin")
        os.mkdir(folder)
        for where in os.environ["PATH"].split(":"):
            for name in set(os.listdir(where) if os.path.isdir(where) else ()) - set(names):
                if not os.path.lexists(os.path.join(folder, name)):
                    os.symlink(os.path.join(where, name), os.path.join(folder, name))
        return {"PATH": folder}

    def no_libraries(self):
        """pkg-config finds none."""
        return {"PKG_CONFIG_LIBDIR": self.path(""), "PKG_CONFIG_PATH": ""}

    def assert_names(self, missing, sets, *command, env, cwd=TOP):
        if not os.path.exists(os.path.join(TOP, "config.mk")):
            self.skipTest("configure has not run")
        done = run(*command, cwd=cwd, env=env)
        self.assertNotEqual(done.returncode, 0, done)
        self.assertRegex(done.stdout + done.stderr, f"{re.escape(missing)}.*scripts/deps {sets}")

    def target(self, name):
        return "make", "-s", f"BUILD={self.path('build')}", name

    def test_units(self):
        self.assert_names("missing: the library check;", "test", *self.target("check-unit"), env=self.no_libraries())

    def test_fuzzers(self):
        self.assert_names("missing: clang;", "test", *self.target("check-fuzz"), env=self.path_without("clang"))

    def test_lint(self):
        self.assert_names("missing: python3;", "lint", *self.target("lint"), env=self.path_without("python3"))

    def test_packages(self):
        self.assert_names("missing: dpkg-buildpackage, dh;", "build package", "scripts/deb", env=self.path_without("dpkg-buildpackage", "dh"))

    def test_libraries(self):
        self.assert_names("libevent_core is needed", "build", os.path.join(os.path.abspath(TOP), "configure"), env=self.no_libraries(),
                          cwd=self.path(""))


class Systemd(Package):
    smoke = True

    def unit(self):
        """Both units as they are installed, with the program under test: systemd looks whether it is there."""
        self.make("install")
        folder = self.path("root/usr/lib/systemd/system")
        text = read(os.path.join(folder, "setlistd.service")).replace("/usr/sbin/setlistd", OPTIONS.setlistd)
        return [self.file(text, "root/usr/lib/systemd/system/setlistd.service"), os.path.join(folder, "setlistd.socket")]

    @marks(smoke=False)
    def test_units_are_good(self):
        done = run("systemd-analyze", "verify", *self.unit(), env={"MANPATH": self.path("root/usr/share/man")})
        self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""))

    def test_the_service_is_not_exposed(self):
        done = run("systemd-analyze", "security", "--offline=true", f"--threshold={EXPOSURE_TENTHS}", self.unit()[0])
        self.assertEqual(done.returncode, 0, done)
        exposure = re.search(r"exposure level for setlistd.service: ([\d.]+)", done.stdout)
        self.assertLessEqual(float(exposure[1]) * 10, EXPOSURE_TENTHS)

    def test_command_lines(self):
        service = read("conf/setlistd.service")
        lines = [line for line in re.findall(r"^Exec\w+=(.*)", service, re.MULTILINE) if "setlistd" in line]
        self.assertEqual(len(lines), 2)
        for line in lines:
            self.accepted(shlex.split(line), read("conf/minimal.conf"))


class Container(Package):
    smoke = True

    def instruction(self, name):
        """The JSON list of an instruction of the Dockerfile."""
        text = read("conf/Dockerfile").replace("\\\n", "")
        return json.loads(re.search(rf"^{name}\b[^\[\n]*(\[.*\])$", text, re.MULTILINE)[1])

    def edited(self):
        """The configuration in the image: the installed one, as edited by the Dockerfile."""
        script = re.search(r"sed -i '([^']*)' " + INSTALLED_CONF, read("conf/Dockerfile"))
        done = run("sed", script[1], os.path.join(TOP, "conf/minimal.conf"))
        self.assertNotEqual(done.stdout, read("conf/minimal.conf"))
        return done.stdout

    def test_command_lines(self):
        entry = self.instruction("ENTRYPOINT")
        self.accepted(entry, self.edited())
        examples = re.findall(r"^# docker run .* setlistd( -.*)$", read("conf/Dockerfile"), re.MULTILINE)
        self.assertTrue(examples)
        for arguments in examples:
            self.accepted(entry + shlex.split(arguments), self.edited())

    def test_health_check(self):
        admin = free_port()
        proxy = self.setlistd([self.memcached()], config=self.edited().replace("127.0.0.1:11312", f"{HOST}:{admin}")
                              .replace("listen =", "#listen =").replace("servers =", "#servers ="))
        command = [word.replace("11312", str(admin)) for word in self.instruction("HEALTHCHECK")[1:]]
        command = self.instruction("HEALTHCHECK")[:1] + command
        wait_until("the process is healthy", lambda: run(*command).returncode == 0)
        proxy.stop()
        self.assertNotEqual(run(*command).returncode, 0)


class Kubernetes(Package):
    smoke = True

    def setUp(self):
        super().setUp()
        documents = {document["kind"]: document for document in yaml.safe_load_all(read("conf/kubernetes.yaml"))}
        self.config = documents["ConfigMap"]["data"]["setlistd.conf"]
        self.pod = documents["Deployment"]["spec"]["template"]["spec"]
        self.sidecar = self.pod["initContainers"][0]
        self.policy = documents["NetworkPolicy"]
        self.users = documents["Secret"]["stringData"]["users"]
        mounts = {mount["name"]: mount["mountPath"] for mount in self.sidecar["volumeMounts"]}
        self.volumes = {volume["name"]: volume for volume in self.pod["volumes"]}
        self.assertEqual((mounts["setlistd"], set(mounts)), (os.path.dirname(INSTALLED_CONF), set(self.volumes)))
        self.secret = mounts["users"] + "/users"
        self.assertIn(f'auth_file = "{self.secret}"\n', self.config)
        self.with_users = self.config.replace(self.secret, self.private_file(self.users))

    def test_configuration(self):
        """The container runs the command of the image, with the file of the ConfigMap."""
        self.accepted(["setlistd", "-f", INSTALLED_CONF, *self.sidecar.get("args", [])], self.with_users)

    def test_secret(self):
        """The user and the groups of the container may read the users, with the mode that they are mounted with."""
        self.assertEqual(self.volumes["users"]["secret"]["secretName"], "setlistd")
        if os.geteuid() != 0:
            self.skipTest("only root can give a file to another group")
        user, group = self.sidecar["securityContext"]["runAsUser"], self.pod["securityContext"]["fsGroup"]
        path = self.private_file(self.users)
        os.chown(path, 0, group)
        os.chmod(path, self.volumes["users"]["secret"]["defaultMode"])
        config = self.file(self.config.replace(self.secret, path))
        for name in (config, os.path.dirname(config), os.path.dirname(path)):
            os.chmod(name, 0o755)
        # That user need not reach the folder of the build.
        program = shutil.copy(OPTIONS.setlistd, self.scratch())
        done = run_program(program, "-T", "-f", config, user=user, group=user, extra_groups=[group])
        self.assert_good(done)

    def test_probes(self):
        """They request existing paths, on the port that the configuration opens."""
        admin = free_port()
        self.setlistd([self.memcached()], config=re.sub(r"^(listen|servers) .*", "", self.with_users, flags=re.MULTILINE)
                      .replace("0.0.0.0:11312", f"{HOST}:{admin}"))
        self.assertEqual(self.sidecar["ports"], [{"name": "admin", "containerPort": 11312}])
        for name in ("startupProbe", "livenessProbe", "readinessProbe"):
            request = self.sidecar[name]["httpGet"]
            self.assertEqual(request["port"], "admin")
            url = f"http://{HOST}:{admin}{request['path']}"
            wait_until(f"{url} is well", lambda: run("bash", "-c", HTTP_GET, "-", str(admin), request["path"]).stdout == "200")

    def test_policy_names_a_port_by_its_number(self):
        """Some network policy engines do not support names of ports of init containers."""
        ports = [port["port"] for rule in self.policy["spec"]["ingress"] for port in rule["ports"]]
        self.assertIn(self.sidecar["ports"][0]["containerPort"], ports)
        self.assertNotIn("admin", ports)

    def test_stop_waits_for_the_application(self):
        path = self.private_file(self.users)
        proxy = self.setlistd([self.memcached()], config=f'auth_file = "{path}"')
        command = [word.replace("11311", str(proxy.port)).replace(self.secret, path)
                   for word in self.sidecar["lifecycle"]["preStop"]["exec"]["command"]]
        login = self.users.strip().replace(":", " ")
        with self.connect(proxy) as application, self.connect(proxy) as observer:
            for conn in (application, observer):
                self.assertEqual(conn.set("auth", login.encode()), "STORED")
            self.assertEqual(application.ask("mn"), "MN")
            before = stat(observer, "stats", "total_connections")
            with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as waiting:
                self.addCleanup(waiting.kill)
                wait_until("it has looked twice", lambda: stat(observer, "stats", "total_connections") >= before + 3)
                self.assertIsNone(waiting.poll(), "it does not wait for the application")
                application.close()
                observer.close()
                self.assertEqual(waiting.wait(PATIENCE), 0)


# Prints the status of a GET.
HTTP_GET = r"""exec 3<>/dev/tcp/127.0.0.1/$1 || exit
printf 'GET %s HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n' "$2" >&3
read -r _ status _ <&3 && printf %s "$status"
"""


class Html(Package):
    smoke = True

    def test_links(self):
        """All manuals are on one page, and each link within it has a target."""
        if not shutil.which("mandoc"):
            self.skipTest("there is no mandoc")
        done = run(os.path.join(TOP, "scripts/html"), "1.2.3")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        names = re.findall(r' id="([^"]*)"', done.stdout)
        self.assertEqual(len(names), len(set(names)))
        self.assertLessEqual({*os.listdir(os.path.join(TOP, "man"))}, set(names))
        self.assertLessEqual(set(re.findall(r' href="#([^"]*)"', done.stdout)), set(names))

    def test_narrow_screen(self):
        """At the width of a telephone the page does not scroll sideways; wide tables and examples do, each by itself."""
        if not shutil.which("mandoc") or not find_browser():
            self.skipTest("there is no mandoc, or no chromium")
        path = self.file(run(os.path.join(TOP, "scripts/html"), "1.2.3").stdout)
        os.rename(path, f"{path}.html")
        browser = Browser()
        self.addCleanup(browser.stop)
        browser.show(f"file://{path}.html", width=390, height=800)
        browser.wait("it is there", "document.readyState === 'complete' && document.querySelectorAll('article').length > 5")
        self.assertEqual(browser.value("document.documentElement.scrollWidth"), 390)
        self.assertEqual(browser.value("[...document.querySelectorAll('td')].filter((cell) => cell.textContent.length > 20 && "
                                       "cell.clientWidth < 60).length"), 0)


class Completion(Package):
    smoke = True

    def completed(self, *words):
        """Returns the completions of bash for the last word."""
        script = 'source "$0"; spec=$(complete -p "$1"); function=${spec##*-F }; function=${function%% *}; COMP_WORDS=("$@")\n' \
                 'COMP_CWORD=$(($# - 1)); $function; printf "%s\\n" "${COMPREPLY[@]}"'
        done = run("bash", "-c", script, os.path.join(TOP, "conf/setlistd.bash-completion"), *words)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return set(done.stdout.split())

    def test_options(self):
        usage = setlistd("-h").stdout
        self.assertEqual(self.completed("setlistd", "-"), set(re.findall(r"(?<= )--?[a-zA-Z]+(?=[, ])", usage)))

    def test_options_of_programs(self):
        for name in ("convert", "move"):
            usage = run(os.path.join(TOP, f"scripts/{name}"), "--help").stdout
            options = set(re.findall(r"^  (?:-h, )?(--[\w-]+)", usage, re.MULTILINE))
            self.assertGreater(len(options), 5)
            self.assertEqual(self.completed(f"setlistd-{name}", "--"), options)
            page = read(f"man/setlistd-{name}.1")
            documented = re.findall(r"Fl (-[\w-]+)", " ".join(re.findall(r"^\.It (Fl.*)", page, re.MULTILINE)))
            self.assertEqual({f"-{option}" for option in documented}, options)

    def test_arguments(self):
        path = self.file("")
        self.assertEqual(self.completed("setlistd", "-f", path[:-3]), {path})
        self.assertEqual(self.completed("setlistd-convert", "--type", "l"), {"list"})
