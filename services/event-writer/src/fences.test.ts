import { createLogger } from '@playline/runtime';
import { until } from '@playline/testkit';
import { expect, it } from 'vitest';
import { openFences } from './fences.ts';

it('a writer without fences reports the reason in its log and readiness until the fences are loaded', async () => {
  let isMissing = true;
  const records = {
    async *readFences() {
      if (isMissing) throw new Error("Table playline.erasure_fences doesn't exist");
      yield* [];
    },
  };
  const lines: string[] = [];
  const logger = createLogger({ service: 'test', level: 'warn' }, { write: (line: string) => void lines.push(line) });
  const fences = openFences(records, logger);
  await until('the log line is written', () => lines.length > 0);
  expect(fences.set.loaded).toBe(false);
  expect(fences.reasons().fences).toContain("erasure_fences doesn't exist");
  expect(lines.join()).toContain("erasure_fences doesn't exist");
  isMissing = false;
  await until('the fences are loaded', () => fences.set.loaded);
  expect(fences.reasons()).toEqual({});
  expect(lines).toHaveLength(1);
  await fences.close();
});
