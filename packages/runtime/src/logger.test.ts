import { describe, expect, it } from 'vitest';
import { createLogger, redactSecrets } from './logger.ts';

const key = 'sk_svcapik_test-0123456789abcdefghijABCDEFGHIJ012345';

describe('createLogger', () => {
  it('writes no key and no password, in a message, a field or a fault', () => {
    const lines: string[] = [];
    const logger = createLogger({ service: 'test', level: 'info' }, { write: (line: string) => lines.push(line) });
    logger.info({ header: key, address: 'redis://:hunter2@127.0.0.1:1' }, `key ${key}`);
    logger.error({ error: new Error(`refused ${key}`) }, 'fault');
    expect(lines).toHaveLength(2);
    expect(lines.join()).not.toContain(key);
    expect(lines.join()).not.toContain('hunter2');
    expect(lines.join()).toContain('127.0.0.1:1');
  });

  it('keeps the message and the stack of a fault', () => {
    const lines: string[] = [];
    const logger = createLogger({ service: 'test', level: 'info' }, { write: (line: string) => lines.push(line) });
    logger.error({ error: new RangeError('bad offset') }, 'fault');
    const line = JSON.parse(lines[0] ?? '');
    expect(line).toMatchObject({
      service: 'test',
      level: 'error',
      msg: 'fault',
      error: { type: 'RangeError', message: 'bad offset' },
    });
    expect(line.error.stack).toContain('logger.test.ts');
  });
});

describe('redactSecrets', () => {
  it.each(['pk_svcapik-AbC123', 'sk_svcapik_test-AbC123', 'rl_svcapik-AbC123'])('takes out the key %s', (key) => {
    expect(redactSecrets(`unexpected word '${key}'`)).toBe("unexpected word '[key]'");
  });

  it('leaves ordinary text as it is', () => {
    expect(redactSecrets('http://127.0.0.1:8080/path and task_id')).toBe('http://127.0.0.1:8080/path and task_id');
  });
});
