import { fileURLToPath } from 'node:url';
import { closureOf, type House, importersOf, readHouse } from './sources.ts';
import { parseSources } from './syntax.ts';
import { readTree } from './tree.ts';

// Prints the size and the structure of the code: `node test/house/count.ts [folder of a checkout]`. Product files are
// the TypeScript of `services`, `packages` and `infra` without tests, benchmarks and folders named `test`; tests and
// tools are the TypeScript of `test` and every `*.test.ts`. It sets no bounds: the architecture test does.

const linesIn = (text: string) => text.replace(/\n$/, '').split('\n').length;
const sum = (numbers: readonly number[]) => numbers.reduce((total, number) => total + number, 0);
const median = (numbers: readonly number[]) => numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? 0;

/** Files that handle a POST of messages: the steps of its route, and the pipeline that writes its records. */
const ENTRANCES = {
  gateway: [
    'packages/http/src/app.ts',
    'services/gateway/src/authorise.ts',
    'services/gateway/src/metrics.ts',
    'services/gateway/src/publish.ts',
    'services/gateway/src/rate-limits/message-limit.ts',
    'services/gateway/src/rejections.ts',
    'services/gateway/src/routes/messages/handler.ts',
  ],
  'event writer': ['services/event-writer/src/pipeline.ts'],
};

/** Product files that a reader enters who follows every imported name, except for types, from an entrance. */
function enteredFrom(house: House, entrance: readonly string[]): number {
  const starts = entrance.flatMap((path) => house.byPath.get(path) ?? []);
  return new Set(starts.flatMap((start) => closureOf(house, start))).size;
}

function main(root: string): void {
  const tree = readTree(root);
  const house = readHouse(parseSources(tree), tree);
  const sizes = house.files.map(({ text }) => linesIn(text));
  const tests = [...tree].filter(([path]) => /^test\/.*\.ts$|\.test\.ts$/.test(path));
  const sql = [...tree.keys()].filter((path) => /^infra\/clickhouse\/.*\.sql$/.test(path));
  const single = [...importersOf(house).values()].filter(({ size }) => size === 1).length;
  const rows: Record<string, string | number> = {
    'product files': house.files.length,
    'product lines': sum(sizes),
    'median lines of a product file': median(sizes),
    'product files with exactly one importer': `${single} (${Math.round((single / house.files.length) * 100)} %)`,
    'files a POST enters, gateway': enteredFrom(house, ENTRANCES.gateway),
    'files a POST enters, event writer': enteredFrom(house, ENTRANCES['event writer']),
    'SQL files': sql.length,
    'spreads of fresh object literals': sum(
      [...tree].map(([path, text]) => (path.endsWith('.ts') ? text.split(/\.\.\.\{ ?\w/).length - 1 : 0)),
    ),
    'lines of tests and tools': sum(tests.map(([, text]) => linesIn(text))),
  };
  for (const [name, value] of Object.entries(rows)) console.log(`${name}: ${value}`);
}

main(process.argv[2] ?? fileURLToPath(new URL('../..', import.meta.url)));
