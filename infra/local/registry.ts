import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { respondsOk } from './http-probe.ts';
import { jarFolderOf } from './jars.ts';
import { classArchiveOf, type Java } from './java.ts';
import type { ProcessSpec } from './keeper.ts';
import { logFileOf, type StackPaths } from './paths.ts';
import { storeEnvironment } from './store-environment.ts';

/** The Confluent-compatible API. */
const CONFLUENT_PATH = '/apis/ccompat/v7';

export function registryAddress(port: number, scheme: 'http' | 'https' = 'http'): string {
  return `${scheme}://127.0.0.1:${port}${CONFLUENT_PATH}`;
}

export const REGISTRY_PROBE = `${CONFLUENT_PATH}/subjects`;

/** Describes the schema registry on loopback. It stores schema ids in a file, because records contain the ids. */
export function registrySpec(paths: StackPaths, { java, port }: { java: Java; port: number }): ProcessSpec {
  const program = jarFolderOf(paths).registry;
  const runner = readdirSync(program).find((file) => file.endsWith('-runner.jar'));
  if (runner === undefined)
    throw new Error('the schema registry is incomplete. Remove .playline/registry and start again');
  const folder = join(paths.state, 'data', 'registry');
  mkdirSync(folder, { recursive: true });
  const database = `jdbc:h2:file:${join(folder, 'registry')}`;
  const jar = join(program, runner);
  const archive = classArchiveOf(paths, { name: 'registry', java, classPath: jar });
  // -Xmn: an idle registry soon uses its whole young generation again, instead of new memory for hours. -UsePerfData turns
  // off performance counters, which are sampled twenty times per second.
  const flags = ['-Xmx256m', '-Xmn24m', '-XX:+UseSerialGC', '-XX:-UsePerfData', '-XX:TieredStopAtLevel=1'];
  const settings = [
    '-Dquarkus.http.host=127.0.0.1',
    `-Dquarkus.http.port=${port}`,
    // The data source does not read the documented property name, so both names are set.
    `-Dregistry.datasource.url=${database}`,
    `-Dquarkus.datasource.jdbc.url=${database}`,
  ];
  return {
    name: 'registry',
    program: java.program,
    args: [...flags, ...archive.flags, ...settings, '-jar', jar],
    env: storeEnvironment(),
    folder,
    logFile: logFileOf(paths, 'registry'),
    isReady: () => respondsOk(`${registryAddress(port)}/subjects`),
    readyDeadlineMs: 120_000,
    stopBy: 'SIGTERM',
    // The first stop also writes the class archive.
    stopDeadlineMs: 30_000,
    ...(archive.keep !== undefined && { onCleanEnd: archive.keep }),
  };
}
