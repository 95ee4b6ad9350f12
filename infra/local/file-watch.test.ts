import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { until } from '@playline/testkit';
import { expect, onTestFinished, test } from 'vitest';
import { writePrivateFile } from './private-file.ts';
import { openFileWatch } from './stack.ts';
import { testStackPaths } from './test/paths.ts';

test('a replaced file is reported, also when it was replaced before the first check or did not exist yet', async () => {
  const path = join(testStackPaths().state, 'keys.json');
  let told = 0;
  const watch = openFileWatch(path, () => {
    told++;
  });
  onTestFinished(() => watch.close());
  writePrivateFile(path, 'one');
  await until('the first file is told of', () => told === 1);
  writePrivateFile(path, 'two');
  await until('its successor is told of', () => told === 2);
  writeFileSync(path, 'three');
  await until('a change in place is told of', () => told === 3);
  watch.close();
  expect(told).toBe(3);
});
