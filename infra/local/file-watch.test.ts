import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { until } from '@playline/testkit';
import { expect, onTestFinished, test } from 'vitest';
import { writePrivateFile } from './private-file.ts';
import { watchFile } from './stack.ts';
import { testStackPaths } from './test/paths.ts';

test('the file watcher reports a file that was created, replaced or modified', async () => {
  const path = join(testStackPaths().state, 'keys.json');
  let reports = 0;
  const watcher = watchFile(path, () => {
    reports++;
  });
  onTestFinished(() => watcher.close());
  writePrivateFile(path, 'one');
  await until('the new file is reported', () => reports === 1);
  writePrivateFile(path, 'two');
  await until('the replaced file is reported', () => reports === 2);
  writeFileSync(path, 'three');
  await until('the changed file is reported', () => reports === 3);
  watcher.close();
  expect(reports).toBe(3);
});
