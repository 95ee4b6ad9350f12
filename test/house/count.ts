import { fileURLToPath } from 'node:url';
import { handedOn } from '../architecture/composition.ts';
import type { SourceFile } from '../architecture/tree.ts';
import { ABSENT_PAGES } from '../architecture/words.ts';
import { closureOf, type House, readHouse } from './sources.ts';

/**
 * Prints statistics of the code's structure: `node test/house/count.ts [folder of a checkout]`. Product files are the
 * TypeScript of `packages`, `services` and `infra`, without tests, test helpers and the testkit. It sets no bounds.
 */

const linesOf = ({ text }: SourceFile) => text.replace(/\n$/, '').split('\n').length;

/** @param share 0.5 for the median */
function quantile(numbers: readonly number[], share: number): number {
  const sorted = numbers.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}

function spread(numbers: readonly number[]): string {
  return `median ${quantile(numbers, 0.5)}, 90th percentile ${quantile(numbers, 0.9)}, most ${Math.max(...numbers)}`;
}

/** Matches of a pattern, as `path (times)`. */
function placesOf(files: readonly SourceFile[], pattern: RegExp): string[] {
  const all = new RegExp(pattern, `${pattern.flags.replace('g', '')}g`);
  return files.flatMap(({ path, text }) => {
    const times = [...text.matchAll(all)].length;
    return times === 0 ? [] : [times === 1 ? path : `${path} (${times})`];
  });
}

const timesOf = (places: readonly string[]) =>
  places.reduce((sum, place) => sum + Number(/\((\d+)\)$/.exec(place)?.[1] ?? 1), 0);

function tell(words: string, places: readonly string[]): void {
  console.log(`${words}: ${timesOf(places)}`);
  for (const place of places) console.log(`    ${place}`);
}

function importersOf(house: House): Map<SourceFile, Set<SourceFile>> {
  const importers = new Map(house.files.map((file) => [file, new Set<SourceFile>()]));
  for (const file of house.files)
    for (const { from } of house.taken(file)) if (from !== file) importers.get(from)?.add(file);
  return importers;
}

/**
 * Number of consecutive lines that count as repeated when they occur in more than one place. Blank lines, imports and
 * closing brackets do not count.
 */
const WINDOW_LINES = 5;
function saidTwice(files: readonly SourceFile[]): number {
  const places = new Map<string, number>();
  for (const { text } of files) {
    const lines = text
      .replaceAll(/^(import|export)\b[^;]*?from '[^']*';$/gm, '')
      .split('\n')
      .map((line) => line.trim())
      .filter((line) => !/^[\]})>;,]*$/.test(line) && !/^(\/\/|\/?\*)/.test(line));
    for (let at = 0; at + WINDOW_LINES <= lines.length; at++) {
      const window = lines.slice(at, at + WINDOW_LINES).join('\n');
      places.set(window, (places.get(window) ?? 0) + 1);
    }
  }
  return [...places.values()].reduce((sum, times) => sum + (times > 1 ? times - 1 : 0), 0);
}

/** The files that handle a POST of messages: the steps of its route, and the flow that writes its record. */
const ENTRANCES = [
  [
    'the gateway',
    [
      'packages/http/src/app.ts',
      'services/gateway/src/authorise.ts',
      'services/gateway/src/bytes-in-flight.ts',
      'services/gateway/src/metrics.ts',
      'services/gateway/src/publish.ts',
      'services/gateway/src/rate-limits/failed-keys.ts',
      'services/gateway/src/rate-limits/message-limit.ts',
      'services/gateway/src/rejections.ts',
      'services/gateway/src/routes/messages/handler.ts',
    ],
  ],
  ['the event writer', ['services/event-writer/src/pipeline.ts']],
] as const;

function main(root: string): void {
  const house = readHouse(root);
  const { files } = house;
  const importers = importersOf(house);
  const single = files.filter((file) => importers.get(file)?.size === 1);
  const small = (bound: number) => single.filter((file) => linesOf(file) < bound).map(({ path }) => path);
  console.log(`product files: ${files.length}`);
  console.log(`lines of a file: ${spread(files.map(linesOf))}`);
  console.log(`lines of a function: ${spread(files.flatMap(({ functions }) => functions.map(({ lines }) => lines)))}`);
  console.log(`files with exactly one importer: ${single.length}`);
  console.log(`  of them under 20 lines: ${small(20).length}`);
  tell('  of them under 30 lines', small(30));
  for (const [where, paths] of ENTRANCES) {
    const starts = paths.flatMap((path) => house.byPath.get(path) ?? []);
    const entered = new Set(starts.flatMap((start) => closureOf(house, start)));
    const found = [...entered].map(({ path }) => path).toSorted();
    tell(`files of ${where} that a reader enters who follows a POST by every name but types`, found);
  }
  tell('references to pages that are not in the repository', placesOf(files, ABSENT_PAGES));
  tell('option blocks of the Redis client', placesOf(files, /new Redis\(/));
  tell('deadline races', placesOf(files, /Promise\.race\(/));
  const ofClickHouse = files.filter(({ path, text }) => /clickhouse/i.test(path + text));
  tell(
    'places that log in to ClickHouse over HTTP themselves',
    placesOf(ofClickHouse, /x-clickhouse-user|`?Basic \$?/i),
  );
  tell('encoders of Avro (zigzag)', placesOf(files, /\* 2 : -\w+ \* 2 - 1|<< 1n?\) \^/));
  tell('promises around a send of a producer', placesOf(files, /new Promise[^;]{0,120}?\.send\(/));
  tell('interfaces of the registry', placesOf(files, /interface \w+[^{]*\{[^}]*\b(idOf|schemaOf)\b/));
  tell(
    'adapters of a main that are handed on instead of called',
    files
      .filter(({ path }) => /^services\/[^/]+\/src\/main\.ts$/.test(path))
      .flatMap((file) => handedOn(file).map((name) => `${file.path}: ${name}`)),
  );
  console.log(`repeats of ${WINDOW_LINES} lines in a row: ${saidTwice(files)}`);
}

main(process.argv[2] ?? fileURLToPath(new URL('../..', import.meta.url)));
