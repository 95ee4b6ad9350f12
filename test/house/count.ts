import { fileURLToPath } from 'node:url';
import { type Codebase, findImporters, findReachable, readCodebase } from './sources.ts';
import { parseSources } from './syntax.ts';
import { readTree } from './tree.ts';

// Prints the size and structure of the code: `node test/house/count.ts [checkout folder]`. Product files are the
// TypeScript files in `services`, `packages` and `infra`, except tests, benchmarks and folders named `test`. Tests and
// tools are the TypeScript files in `test` and all `*.test.ts` files. The architecture test enforces limits.

const linesIn = (text: string) => text.replace(/\n$/, '').split('\n').length;
const sum = (numbers: readonly number[]) => numbers.reduce((total, number) => total + number, 0);
const median = (numbers: readonly number[]) => numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? 0;

/** Entry points for posting messages: the steps of the route, and the pipeline that writes the records. */
const ENTRY_POINTS = {
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

function countReachable(codebase: Codebase, entryPoints: readonly string[]): number {
  const starts = entryPoints.flatMap((path) => codebase.byPath.get(path) ?? []);
  return new Set(starts.flatMap((start) => findReachable(codebase, start))).size;
}

function main(root: string): void {
  const tree = readTree(root);
  const codebase = readCodebase(parseSources(tree), tree);
  const sizes = codebase.files.map(({ text }) => linesIn(text));
  const tests = [...tree].filter(([path]) => /^test\/.*\.ts$|\.test\.ts$/.test(path));
  const sql = [...tree.keys()].filter((path) => /^infra\/clickhouse\/.*\.sql$/.test(path));
  const single = [...findImporters(codebase).values()].filter(({ size }) => size === 1).length;
  const rows: Record<string, string | number> = {
    'product files': codebase.files.length,
    'product lines': sum(sizes),
    'median lines of a product file': median(sizes),
    'product files with exactly one importer': `${single} (${Math.round((single / codebase.files.length) * 100)} %)`,
    'files reachable from a POST, gateway': countReachable(codebase, ENTRY_POINTS.gateway),
    'files reachable from a POST, event writer': countReachable(codebase, ENTRY_POINTS['event writer']),
    'SQL files': sql.length,
    'spreads of object literals': sum(
      [...tree].map(([path, text]) => (path.endsWith('.ts') ? text.split(/\.\.\.\{ ?\w/).length - 1 : 0)),
    ),
    'lines of tests and tools': sum(tests.map(([, text]) => linesIn(text))),
  };
  for (const [name, value] of Object.entries(rows)) console.log(`${name}: ${value}`);
}

main(process.argv[2] ?? fileURLToPath(new URL('../..', import.meta.url)));
