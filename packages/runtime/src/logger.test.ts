import { expect, it } from 'vitest';
import { createLogger, redactSecrets } from './logger.ts';

const key = 'sk_svcapik_test-0123456789abcdefghijABCDEFGHIJ012345';

function openLog() {
  const lines: string[] = [];
  const logger = createLogger({ service: 'test', level: 'info' }, { write: (line: string) => lines.push(line) });
  return { lines, logger };
}

it('the logger redacts keys and passwords in messages, fields and errors', () => {
  const { lines, logger } = openLog();
  logger.info({ header: key, address: 'redis://:hunter2@127.0.0.1:1' }, `key ${key}`);
  logger.error({ error: new Error(`refused ${key}`) }, 'fault');
  expect(lines).toHaveLength(2);
  expect(lines.join()).not.toContain(key);
  expect(lines.join()).not.toContain('hunter2');
  expect(lines.join()).toContain('127.0.0.1:1');
});

it("the logger writes an error's type, message and stack", () => {
  const { lines, logger } = openLog();
  logger.error({ error: new RangeError('bad offset') }, 'fault');
  const line = JSON.parse(lines[0] ?? '');
  const error = { type: 'RangeError', message: 'bad offset' };
  expect(line).toMatchObject({ service: 'test', level: 'error', msg: 'fault', error });
  expect(line.error.stack).toContain('logger.test.ts');
});

it.each(['pk_svcapik-AbC123', 'sk_svcapik_test-AbC123', 'rl_svcapik-AbC123'])('the key %s is redacted', (key) => {
  expect(redactSecrets(`unexpected word '${key}'`)).toBe("unexpected word '[key]'");
});

it('text without secrets is not redacted', () => {
  expect(redactSecrets('http://127.0.0.1:8080/path and task_id')).toBe('http://127.0.0.1:8080/path and task_id');
});
