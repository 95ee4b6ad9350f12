import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { findProgram, runCommand } from './command.ts';
import { areJarsThere } from './jars.ts';
import { findJava, JAVA_MAJOR_MIN } from './java.ts';
import { logFileOf, type StackPaths } from './paths.ts';

/** Something that the stack needs and this machine lacks. */
export interface MissingPart {
  what: string;
  debian: string;
  brew: string;
}

/** Finds what is missing on this machine. Maven is needed only until the jars are installed. */
export function findMissingParts(places: StackPaths): MissingPart[] {
  const missing: MissingPart[] = [];
  if (findJava() === null)
    missing.push({ what: `Java ${JAVA_MAJOR_MIN} or newer`, debian: 'default-jre-headless', brew: 'openjdk@21' });
  if (!areJarsThere(places) && findProgram('mvn') === null)
    missing.push({ what: 'Maven', debian: 'maven', brew: 'maven' });
  if (findProgram('redis-server') === null) missing.push({ what: 'Redis', debian: 'redis-server', brew: 'redis' });
  return missing;
}

/**
 * Names of Chromium in Linux distributions, and of browsers based on it. First the one without windows: it draws the same
 * pages, and the test of all pages of the portal takes 31 CPU-seconds of it, of a whole Chromium 48.
 */
const BROWSERS = ['chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome'];
/** The package with one of them, by distribution; `chromium` elsewhere. Ubuntu and what comes from it have a snap. */
const BROWSER_PACKAGES: Readonly<Record<string, string>> = {
  debian: 'chromium-headless-shell',
  ubuntu: 'chromium-browser',
};

/** The path of a browser without windows, else of any; null when there is none. */
export function findBrowser(): string | null {
  for (const name of BROWSERS) {
    const path = findProgram(name);
    if (path !== null) return path;
  }
  return null;
}

/** The package of a browser for this machine, by the `os-release` of its distribution. */
function browserPackage(): string {
  let release = '';
  try {
    release = readFileSync('/etc/os-release', 'utf8');
  } catch {
    return 'chromium';
  }
  // An Ubuntu under another name says `ID_LIKE="ubuntu debian"`.
  const names = [...release.matchAll(/^ID(?:_LIKE)?="?([^"\n]+)/gm)].flatMap(([, words = '']) => words.split(' '));
  const name = names.includes('ubuntu') ? 'ubuntu' : (names[0] ?? '');
  return BROWSER_PACKAGES[name] ?? 'chromium';
}

/**
 * Finds what only the tests need: a browser for the client library, and OpenSSL for the certificates of stores with
 * TLS.
 */
export function findMissingTestParts(): MissingPart[] {
  const missing: MissingPart[] = [];
  if (findBrowser() === null)
    missing.push({
      what: 'Chromium',
      debian: browserPackage(),
      brew: '--cask chromium',
    });
  if (findProgram('openssl') === null) missing.push({ what: 'OpenSSL', debian: 'openssl', brew: 'openssl@3' });
  return missing;
}

/** The command with which a person installs the missing parts. */
export function installLine(missing: readonly MissingPart[]): string {
  if (process.platform === 'darwin') return `brew install ${missing.map((part) => part.brew).join(' ')}`;
  const packages = missing.map((part) => part.debian).join(' ');
  return `sudo apt-get update && sudo apt-get install -y --no-install-recommends ${packages}`;
}

/** How to become root without a question: [] as root, null when it is impossible. */
function rootPrefix(): string[] | null {
  if (process.getuid?.() === 0) return [];
  const sudo = findProgram('sudo');
  if (sudo === null || spawnSync(sudo, ['-n', 'true'], { stdio: 'ignore' }).status !== 0) return null;
  return [sudo, '-n'];
}

/**
 * Installs the missing parts with apt-get, as root, or by sudo if it asks for no password. A redis-server package may
 * start a service of its own. It is left alone, because the stack has its own port.
 * @throws Error with the exact command when it cannot install by itself
 */
export async function installMissingParts(
  places: StackPaths,
  say: (line: string) => void,
  find: () => MissingPart[] = () => findMissingParts(places),
): Promise<void> {
  const missing = find();
  if (missing.length === 0) return;
  const names = missing.map((part) => part.what).join(', ');
  const byHand = () =>
    new Error(`${names}: not installed. Run this line, then start again:\n    ${installLine(missing)}`);
  if (process.platform !== 'linux' || !existsSync('/usr/bin/apt-get')) throw byHand();
  const prefix = rootPrefix();
  if (prefix === null) throw byHand();
  const packages = missing.map((part) => part.debian);
  say(`installing ${names} (apt-get install ${packages.join(' ')})`);
  // `sudo` resets the environment, so the variables go through env(1).
  const [program = '', ...first] = [...prefix, 'env', 'DEBIAN_FRONTEND=noninteractive', 'apt-get', '-q'];
  const options = { folder: places.checkout, logFile: logFileOf(places, 'apt') };
  await runCommand(program, [...first, 'update'], options);
  await runCommand(program, [...first, 'install', '-y', '--no-install-recommends', ...packages], options);
  const still = find();
  if (still.length > 0)
    throw new Error(`${still.map((part) => part.what).join(', ')}: still not found after apt-get install`);
}
