import { expect, it } from 'vitest';
import { ClickHouseFault } from './clickhouse-query.ts';
import { toStoreFault } from './store-fault.ts';

const createError = (code: string, type?: string) => Object.assign(new Error('Code: 1\nrows'), { code, type });

it.each([
  ['241', 'MEMORY_LIMIT_EXCEEDED', 'oversize'],
  ['394', 'QUERY_WAS_CANCELLED', 'transient'],
  ['236', 'ABORTED', 'transient'],
  ['243', 'NOT_ENOUGH_SPACE', 'transient'],
  ['173', 'CANNOT_ALLOCATE_MEMORY', 'transient'],
  ['516', 'AUTHENTICATION_FAILED', 'transient'],
  ['497', 'ACCESS_DENIED', 'transient'],
  ['252', 'TOO_MANY_PARTS', 'transient'],
  ['1002', 'UNKNOWN_EXCEPTION', 'transient'],
  ['99999', 'ADDED_IN_LATER_RELEASE', 'transient'],
  ['ECONNREFUSED', undefined, 'transient'],
  ['60', 'UNKNOWN_TABLE', 'permanent'],
  ['16', 'NO_SUCH_COLUMN_IN_TABLE', 'permanent'],
  ['53', 'TYPE_MISMATCH', 'permanent'],
  ['33', 'CANNOT_READ_ALL_DATA', 'permanent'],
])('toStoreFault classifies the ClickHouse error %s %s as %s', (code, type, kind) => {
  const fault = toStoreFault(createError(code, type));
  expect(fault).toMatchObject({ kind, code: type ?? code });
  expect(fault.message).toContain(type ?? code);
  expect(fault.message).not.toContain('rows');
});

it('toStoreFault classifies an unknown error as transient and names it', () => {
  expect(toStoreFault(new Error('Timeout error.'))).toMatchObject({ kind: 'transient', code: 'network' });
  expect(toStoreFault('odd')).toMatchObject({ kind: 'transient', code: 'network', message: 'ClickHouse network: odd' });
  expect(toStoreFault(createError('777'))).toMatchObject({ kind: 'transient', code: 'code 777' });
});

it('toStoreFault names the network error that fetch wraps, and does not mistake a timeout for a ClickHouse error', () => {
  const refused = new TypeError('fetch failed', { cause: createError('ECONNREFUSED') });
  expect(toStoreFault(refused)).toMatchObject({ kind: 'transient', code: 'ECONNREFUSED' });
  const timeout = new DOMException('The operation timed out', 'TimeoutError');
  expect(toStoreFault(timeout)).toMatchObject({ kind: 'transient', code: 'network' });
  const denied = new ClickHouseFault(403, '497', 'Code: 497. DB::Exception: rows. (ACCESS_DENIED) (version 26.7)');
  expect(toStoreFault(denied)).toMatchObject({ kind: 'transient', code: 'ACCESS_DENIED' });
});

it('toStoreFault classifies truncated data as transient if a node of a cluster closed the connection', () => {
  const cut = 'Attempt to read after eof: while receiving packet from 127.0.0.1:9000';
  const error = Object.assign(new Error(cut), { code: '32', type: 'ATTEMPT_TO_READ_AFTER_EOF' });
  expect(toStoreFault(error)).toMatchObject({ kind: 'transient', code: 'ATTEMPT_TO_READ_AFTER_EOF' });
});
