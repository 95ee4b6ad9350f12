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
const CAUGHT_SHARE_MIN = 0.9;
/** How vitest names a test that failed. A file that could not be loaded has no title behind its path. */
const FAILED_TEST = /^ *FAIL .*? > (.+)$/m;

/** Aborted by a signal: it ends the tests, and the file with a fault is restored. */
const stop = new AbortController();
const testOf = ({ file, test }: PlantedFault) => test ?? file.replace(/\.ts$/, '.test.ts');

/** @returns the title of a test that failed, or null; `passed` is false also when nothing ran */
async function runTests(paths: readonly string[], stores: string) {
  const args = [join(ROOT, 'node_modules/.bin/vitest'), 'run', ...paths, '--bail=1', '--reporter=default'];
  const env = { ...process.env, PLAYLINE_TEST_STORES: stores, NO_COLOR: '1' };
  const tests = spawn(process.execPath, args, { cwd: ROOT, env });
  stop.signal.addEventListener('abort', () => tests.kill(), { once: true });
  const [code, ...outputs] = await Promise.all([
    new Promise((resolve) => tests.on('close', resolve)),
    ...[tests.stdout, tests.stderr].map(text),
  ]);
  stop.signal.throwIfAborted();
  const output = outputs.join('');
  return { passed: code === 0, failed: FAILED_TEST.exec(output)?.[1] ?? null, output };
}

/** @throws Error for a file with changes, which a restore could lose, and for a fault that does not fit its file */
function assertPlantable({ what, file, find }: PlantedFault): void {
  const changes = execFileSync('git', ['status', '--porcelain', '--', file], { cwd: ROOT, encoding: 'utf8' });
  if (changes !== '') throw new Error(`${file} has changes. Commit them before planting faults.`);
  const count = readFileSync(join(ROOT, file), 'utf8').split(find).length - 1;
  if (count !== 1)
    throw new Error(`${what} Its text occurs ${count} times in ${file}. Correct test/planted/faults.ts.`);
}

/** @returns the title of the test that caught the fault; null when none did */
async function plant(fault: PlantedFault, stores: string): Promise<string | null> {
  assertPlantable(fault);
  const path = join(ROOT, fault.file);
  const original = readFileSync(path, 'utf8');
  try {
    writeFileSync(
      path,
      original.replace(fault.find, () => fault.replace),
    );
    return (await runTests([testOf(fault)], stores)).failed;
  } finally {
    writeFileSync(path, original);
  }
}

/** @returns how many faults were caught. @throws Error when a test fails without a fault */
async function plantAll(faults: readonly PlantedFault[], stores: string): Promise<number> {
  const { passed, output } = await runTests([...new Set(faults.map(testOf))], stores);
  if (!passed) throw new Error(`The tests must pass before a fault is planted:\n${output}`);
  const rows: string[] = [];
  let caught = 0;
  for (const fault of faults) {
    const title = await plant(fault, stores);
    const test = `\`${testOf(fault)}\``;
    if (title !== null) caught += 1;
    console.error(`${title === null ? 'NOT CAUGHT' : 'caught'}: ${fault.what}\n  ${title ?? test}`);
    rows.push(`| ${fault.what} | \`${fault.file}\` | ${title === null ? 'NOT CAUGHT' : test} |`);
  }
  console.log(['| what | file | caught by |', '|---|---|---|', ...rows].join('\n'));
  console.log(`\n${caught} of ${faults.length} caught`);
  return caught;
}

const planted = command(
  'planted',
  'plant faults in the code of this checkout, one after the other, and run the quick test that must fail because of each',
)
  .option('--only <text>', 'only faults with this text in their sentence or file', '')
  .addHelpText(
    'after',
    '\nPrints a table of what caught each fault. Ends with 1 when fewer than nine in ten were caught.',
  )
  .action(async ({ only }) => {
    const faults = FAULTS.filter(({ what, file }) => `${what} ${file}`.includes(only));
    if (faults.length === 0) throw new UsageError('--only: no fault has this text');
    for (const fault of faults) assertPlantable(fault);
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => stop.abort(new Error('interrupted')));
    const given = process.env.PLAYLINE_TEST_STORES ?? '';
    const own = given === '' ? await startLocalStores() : null;
    try {
      const caught = await plantAll(faults, own === null ? given : JSON.stringify(own.stores));
      endWith(caught < CAUGHT_SHARE_MIN * faults.length ? EXIT.failed : EXIT.ok);
    } finally {
      await own?.stop();
    }
  });

await runMeasure(planted);
