import { execFileSync, spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { startLocalStores } from '../../packages/testkit/src/global-setup.ts';
import { command, EXIT, endWith, UsageError } from '../../services/operator/src/command.ts';
import { runMeasure } from '../measure.ts';
import { FAULTS, type PlantedFault } from './faults.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const CAUGHT_FRACTION_MIN = 0.9;
/** Matches vitest's line for a failed test. A file that could not be loaded has no title after its path. */
const FAILED_TEST = /^ *FAIL .*? > (.+)$/m;

/** Aborted by a signal, which stops the tests and restores the file with the fault. */
const interruption = new AbortController();
const toTestPath = ({ file, test }: PlantedFault) => test ?? file.replace(/\.ts$/, '.test.ts');

/** Runs tests. @returns the title of a failed test, or null; `passed` is also false if no test ran */
async function runTests(paths: readonly string[], stores: string) {
  const args = [join(ROOT, 'node_modules/.bin/vitest'), 'run', ...paths, '--bail=1', '--reporter=default'];
  const env = { ...process.env, PLAYLINE_TEST_STORES: stores, NO_COLOR: '1' };
  const tests = spawn(process.execPath, args, { cwd: ROOT, env });
  interruption.signal.addEventListener('abort', () => tests.kill(), { once: true });
  const [code, ...outputs] = await Promise.all([
    new Promise((resolve) => tests.on('close', resolve)),
    ...[tests.stdout, tests.stderr].map(text),
  ]);
  interruption.signal.throwIfAborted();
  const output = outputs.join('');
  return { passed: code === 0, failed: FAILED_TEST.exec(output)?.[1] ?? null, output };
}

/** @throws Error for a file with uncommitted changes, and for a fault that does not match its file */
function assertPlantable({ what, file, find }: PlantedFault): void {
  const changes = execFileSync('git', ['status', '--porcelain', '--', file], { cwd: ROOT, encoding: 'utf8' });
  if (changes !== '') throw new Error(`${file} has uncommitted changes. Commit them before planting faults.`);
  const count = readFileSync(join(ROOT, file), 'utf8').split(find).length - 1;
  if (count !== 1)
    throw new Error(`${what} The code to replace occurs ${count} times in ${file}. Correct test/planted/faults.ts.`);
}

/** Plants a fault and runs its test. @returns the title of the test that caught the fault, or null */
async function plant(fault: PlantedFault, stores: string): Promise<string | null> {
  assertPlantable(fault);
  const path = join(ROOT, fault.file);
  const original = readFileSync(path, 'utf8');
  try {
    writeFileSync(
      path,
      original.replace(fault.find, () => fault.replace),
    );
    return (await runTests([toTestPath(fault)], stores)).failed;
  } finally {
    writeFileSync(path, original);
  }
}

async function plantAll(faults: readonly PlantedFault[], stores: string): Promise<number> {
  const { passed, output } = await runTests([...new Set(faults.map(toTestPath))], stores);
  if (!passed) throw new Error(`The tests must pass before a fault is planted:\n${output}`);
  const rows: string[] = [];
  let caught = 0;
  for (const fault of faults) {
    const title = await plant(fault, stores);
    const test = `\`${toTestPath(fault)}\``;
    if (title !== null) caught += 1;
    console.error(`${title === null ? 'NOT CAUGHT' : 'caught'}: ${fault.what}\n  ${title ?? test}`);
    rows.push(`| ${fault.what} | \`${fault.file}\` | ${title === null ? 'NOT CAUGHT' : test} |`);
  }
  console.log(['| fault | file | caught by |', '|---|---|---|', ...rows].join('\n'));
  console.log(`\n${caught} of ${faults.length} caught`);
  return caught;
}

const planted = command(
  'planted',
  'plant faults in the code of this checkout, one at a time, and run the quick tests that must fail',
)
  .option('--only <text>', 'only faults whose description or file contains this text', '')
  .addHelpText(
    'after',
    '\nPrints a table of faults and the tests that caught them. Exits with 1 if fewer than 90 % were caught.',
  )
  .action(async ({ only }) => {
    const faults = FAULTS.filter(({ what, file }) => `${what} ${file}`.includes(only));
    if (faults.length === 0) throw new UsageError('--only: no fault matches');
    for (const fault of faults) assertPlantable(fault);
    for (const signal of ['SIGINT', 'SIGTERM'] as const)
      process.on(signal, () => interruption.abort(new Error('interrupted')));
    const configured = process.env.PLAYLINE_TEST_STORES ?? '';
    const started = configured === '' ? await startLocalStores() : null;
    try {
      const caught = await plantAll(faults, started === null ? configured : JSON.stringify(started.stores));
      endWith(caught < CAUGHT_FRACTION_MIN * faults.length ? EXIT.failed : EXIT.ok);
    } finally {
      await started?.stop();
    }
  });

await runMeasure(planted);
