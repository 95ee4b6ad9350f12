// Images for docker-compose.yml. An image that cannot be pulled is replaced by a substitute: the same program, built
// from packages (substitutes/compose.yml). README.md lists what a substitute cannot show.
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { CHECKOUT, logFileOf, stackPathsOf } from '@playline/infra/paths';
import { parse } from 'yaml';
import { clickhouseSpec, engineLibrary } from '../../infra/local/clickhouse.ts';
import { runCommand } from '../../infra/local/command.ts';
import { jarFolderOf } from '../../infra/local/jars.ts';
import { loadSecrets } from '../../infra/local/secrets.ts';
import { ENGINE_FOLDER } from './engine.ts';

const FOLDER = join(import.meta.dirname, 'substitutes');
const CONTEXT = join(ENGINE_FOLDER, 'context');
const BASE = 'playline-substitute/debian:12';
/** The newest release of the registry's minor version that Maven has as an archive. */
const REGISTRY_ARCHIVE = 'io.apicurio:apicurio-registry-app:3.3.3:tar.gz:all';

const paths = stackPathsOf();
const read = (path: string) => readFileSync(join(CHECKOUT, path), 'utf8');
const run = (program: string, ...args: string[]) =>
  runCommand(program, args, { folder: CHECKOUT, logFile: logFileOf(paths, 'substitutes') });
const inspect = (image: string, format: string) =>
  run('docker', 'image', 'inspect', '--format', format, image).then(
    (text) => text.trim(),
    () => null,
  );

/** Returns the image of each store in docker-compose.yml, and the image of Node. */
export function imagesOf(): Record<string, string> {
  const { services } = parse(read('docker-compose.yml'), { merge: true, maxAliasCount: -1 });
  const stores = ['kafka', 'registry', 'redis', 'clickhouse'].map((name) => [name, services[name].image]);
  const node = /^FROM (\S+)/m.exec(read('infra/docker/Dockerfile'))?.[1] ?? '';
  return { node, ...Object.fromEntries(stores) };
}

/** Debian 12 with the certificate authorities of this machine, so that package clients work during builds. */
async function importBase(): Promise<void> {
  const root = join(ENGINE_FOLDER, 'rootfs');
  rmSync(root, { recursive: true, force: true });
  await run('debootstrap', '--variant=minbase', '--include=ca-certificates', 'bookworm', root);
  cpSync('/etc/ssl/certs/ca-certificates.crt', join(root, 'etc/ssl/certs/ca-certificates.crt'));
  await run('sh', '-c', `tar -C '${root}' --exclude './var/cache/apt/*' -c . | docker import - ${BASE}`);
  rmSync(root, { recursive: true });
}

/** Gathers the programs of the local stack in the build context. */
async function fillContext(): Promise<void> {
  rmSync(CONTEXT, { recursive: true, force: true });
  const copy = (from: string, to: string) => cpSync(realpathSync(from), join(CONTEXT, to), { recursive: true });
  const npm = process.env.npm_execpath ?? execFileSync('which', ['npm'], { encoding: 'utf8' }).trim();
  copy(process.execPath, 'node');
  copy(dirname(dirname(realpathSync(npm))), 'npm');
  copy(jarFolderOf(paths).kafka, 'kafka');
  copy(join(CHECKOUT, 'infra/local/jars/log4j2.properties'), 'log4j2.properties');
  copy(engineLibrary(), 'clickhouse/libchdb.so');
  for (const name of ['engine', 'lifeline', 'folder-removal'])
    copy(join(CHECKOUT, `infra/local/clickhouse-${name}.ts`), `clickhouse/clickhouse-${name}.ts`);
  for (const name of ['ffi-rs', '@yuuang/ffi-rs-linux-x64-gnu'])
    copy(join(CHECKOUT, 'node_modules', name), `clickhouse/node_modules/${name}`);
  writeFileSync(join(CONTEXT, 'clickhouse/package.json'), '{ "type": "module" }');
  // The local stack's configuration, without the files that docker-compose.yml mounts.
  const state = join(CONTEXT, 'stack');
  mkdirSync(state);
  const etc = join(state, 'etc/clickhouse');
  const stack = { ...paths, state };
  clickhouseSpec(stack, { port: 8123, secrets: loadSecrets(stack) });
  const configuration = readFileSync(join(etc, 'config.xml'), 'utf8').replaceAll(etc, '/etc/clickhouse-server');
  mkdirSync(join(CONTEXT, 'clickhouse-etc'));
  writeFileSync(join(CONTEXT, 'clickhouse-etc/config.xml'), configuration);
  copy(join(etc, 'users.d'), 'clickhouse-etc/users.d');
  rmSync(state, { recursive: true });
  await run(
    ...['mvn', '-B', '-ntp', '-q', `-Dmaven.repo.local=${join(CONTEXT, 'maven')}`],
    ...['org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy', `-Dartifact=${REGISTRY_ARCHIVE}`],
    ...['-Dmdep.stripVersion=true', `-DoutputDirectory=${CONTEXT}`],
  );
}

async function build(names: readonly string[], images: Record<string, string>): Promise<void> {
  if ((await inspect(BASE, '{{.Id}}')) === null) await importBase();
  if (!existsSync(CONTEXT)) await fillContext();
  cpSync(FOLDER, CONTEXT, { recursive: true });
  const settings = Object.entries({ BASE, CONTEXT, ...images }).map(
    ([name, value]) => `${name.toUpperCase()}=${value}`,
  );
  for (const name of names)
    await run('env', ...settings, 'docker', 'compose', '-f', join(FOLDER, 'compose.yml'), 'build', name);
}

/** Pulls missing images, or builds substitutes. @returns the images that are substitutes */
export async function provideImages(report: (line: string) => void): Promise<string[]> {
  const images = imagesOf();
  const missing: string[] = [];
  for (const [name, image] of Object.entries(images)) {
    if ((await inspect(image, '{{.Id}}')) !== null) continue;
    report(`pulling ${image}`);
    await run('docker', 'pull', '--quiet', image).catch(() => missing.push(name));
  }
  if (missing.length > 0) {
    report(`not available, building substitutes: ${missing.map((name) => images[name]).join(', ')}`);
    await build(missing, images);
  }
  const labels = await Promise.all(
    Object.values(images).map(async (image) => [image, await inspect(image, '{{.Config.Labels.substitute}}')] as const),
  );
  return labels.flatMap(([image, label]) => (label === 'true' ? [image] : []));
}
