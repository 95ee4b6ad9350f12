// A container engine for tests. Where none responds, installs Debian's docker.io and Compose, and starts the engine in
// `.playline/containers`. To use the engine in a shell: eval "$(node test/containers/engine.ts)"
import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { installMissingParts, type MissingPart } from '@playline/infra/machine';
import { logFileOf, stackPathsOf } from '@playline/infra/paths';
import { until } from '@playline/testkit/until';
import { runCommand } from '../../infra/local/command.ts';

const paths = stackPathsOf();
/** Short, because a socket path has at most 108 characters. */
export const ENGINE_FOLDER = join(paths.downloads, 'containers');
const START_MS = 60_000;

/** Debian 12 has no Compose v2, so the package of this later release is unpacked. */
const COMPOSE_SUITE = 'trixie';

/** Settings of the engine in ENGINE_FOLDER, which may not be able to pull the cleanup container of testcontainers. */
const OWN_ENGINE = {
  DOCKER_HOST: `unix://${join(ENGINE_FOLDER, 'docker.sock')}`,
  DOCKER_CONFIG: join(ENGINE_FOLDER, 'config'),
  TESTCONTAINERS_RYUK_DISABLED: 'true',
  // Otherwise a machine that is itself a container uses the address of its bridge, which the proxies of tests do not.
  TESTCONTAINERS_HOST_OVERRIDE: '127.0.0.1',
};

/** An engine that takes longer to respond counts as absent. */
const RESPONSE_MS = 30_000;

const succeeds = (args: string[]) => spawnSync('docker', args, { stdio: 'ignore', timeout: RESPONSE_MS }).status === 0;
const responds = () => succeeds(['version']);
const hasCompose = () => succeeds(['compose', 'version']);
export const hasEngine = (): boolean => responds() && hasCompose();

function findMissingEngineParts(): MissingPart[] {
  const programs = { dockerd: 'docker.io', iptables: 'iptables', debootstrap: 'debootstrap' };
  const isMissing = (name: string) => spawnSync('which', [name], { stdio: 'ignore' }).status !== 0;
  return Object.entries(programs).flatMap(([name, debian]) =>
    isMissing(name) ? [{ what: name, debian, brew: debian }] : [],
  );
}

/** Starts the engine. @returns a function that stops the engine */
async function startEngine(): Promise<() => Promise<void>> {
  const log = openSync(join(ENGINE_FOLDER, 'dockerd.log'), 'a');
  const args = ['--host', OWN_ENGINE.DOCKER_HOST, '--pidfile', join(ENGINE_FOLDER, 'dockerd.pid')];
  const folders = ['--data-root', join(ENGINE_FOLDER, 'data'), '--exec-root', join(ENGINE_FOLDER, 'exec')];
  const engine = spawn('dockerd', [...args, ...folders], { stdio: ['ignore', log, log], detached: true });
  engine.unref();
  await until(`the container engine responds (see ${ENGINE_FOLDER}/dockerd.log)`, responds, START_MS);
  return async () => {
    engine.kill('SIGTERM');
    await until('the container engine stops', () => engine.exitCode !== null, START_MS);
  };
}

/** Downloads Compose v2 from the first Debian mirror of this machine, without changing its package sources. */
async function installCompose(): Promise<void> {
  const folder = join(ENGINE_FOLDER, 'compose');
  const plugins = join(OWN_ENGINE.DOCKER_CONFIG, 'cli-plugins');
  for (const each of [join(folder, 'lists', 'partial'), plugins]) mkdirSync(each, { recursive: true });
  const options = { folder, logFile: logFileOf(paths, 'apt') };
  const sites = await runCommand('apt-get', ['indextargets', '--format', '$(SITE)', 'Label: Debian'], options);
  const keyring = '/usr/share/keyrings/debian-archive-keyring.gpg';
  const source = `deb [signed-by=${keyring}] ${sites.split('\n')[0]} ${COMPOSE_SUITE} main\n`;
  writeFileSync(join(folder, 'sources.list'), source);
  const settings = [`Etc::sourcelist=${folder}/sources.list`, 'Etc::sourceparts=-', `State::lists=${folder}/lists`];
  const flags = ['-q', ...[...settings, 'Cache::pkgcache=', 'Cache::srcpkgcache='].map((each) => `-oDir::${each}`)];
  await runCommand('apt-get', [...flags, 'update'], options);
  await runCommand('apt-get', [...flags, 'download', 'docker-compose'], options);
  await runCommand(
    'sh',
    ['-c', `dpkg-deb -x docker-compose_*.deb . && cp usr/libexec/docker/cli-plugins/* '${plugins}'`],
    options,
  );
  rmSync(folder, { recursive: true });
}

/**
 * Provides an engine with Compose v2 to this process and its children.
 * @returns a function that stops the engine if this call has started the engine
 * @throws Error with the command to run if the engine cannot be installed
 */
export async function provideEngine(report: (line: string) => void): Promise<() => Promise<void>> {
  let stop = async () => {};
  if (!responds()) {
    Object.assign(process.env, OWN_ENGINE);
    mkdirSync(ENGINE_FOLDER, { recursive: true });
    if (!responds()) {
      await installMissingParts(paths, report, findMissingEngineParts);
      report('starting a container engine');
      stop = await startEngine();
    }
  }
  if (!hasCompose()) {
    report('installing Compose');
    await installCompose();
  }
  return stop;
}

if (import.meta.main) {
  await provideEngine(console.error);
  for (const name of Object.keys(OWN_ENGINE)) console.log(`export ${name}='${process.env[name] ?? ''}'`);
}
