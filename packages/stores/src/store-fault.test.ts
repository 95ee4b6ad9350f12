import { expect, it } from 'vitest';
import { toStoreFault } from './store-fault.ts';

const createError = (code: string, type?: string) => Object.assign(new Error('Code: 1\nrows'), { code, type });

it.each([
  ['241', 'MEMORY_LIMIT_EXCEEDED', 'oversize'],
  ['394', 'QUERY_WAS_CANCELLED', 'passing'],
  ['236', 'ABORTED', 'passing'],
  ['243', 'NOT_ENOUGH_SPACE', 'passing'],
  ['173', 'CANNOT_ALLOCATE_MEMORY', 'passing'],
  ['516', 'AUTHENTICATION_FAILED', 'passing'],
  ['497', 'ACCESS_DENIED', 'passing'],
  ['252', 'TOO_MANY_PARTS', 'passing'],
  ['1002', 'UNKNOWN_EXCEPTION', 'passing'],
  ['99999', 'OF_A_LATER_RELEASE', 'passing'],
  ['ECONNREFUSED', undefined, 'passing'],
  ['60', 'UNKNOWN_TABLE', 'final'],
  ['16', 'NO_SUCH_COLUMN_IN_TABLE', 'final'],
  ['53', 'TYPE_MISMATCH', 'final'],
  ['33', 'CANNOT_READ_ALL_DATA', 'final'],
])('toStoreFault classifies the ClickHouse error %s %s as %s', (code, type, kind) => {
  const fault = toStoreFault(createError(code, type));
  expect(fault).toMatchObject({ kind, code: type ?? code });
  expect(fault.message).toContain(type ?? code);
  expect(fault.message).not.toContain('rows');
});

it('toStoreFault classifies an unknown error as passing and names it', () => {
  expect(toStoreFault(new Error('Timeout error.'))).toMatchObject({ kind: 'passing', code: 'network' });
  expect(toStoreFault('odd')).toMatchObject({ kind: 'passing', code: 'network', message: 'ClickHouse network: odd' });
  expect(toStoreFault(createError('777'))).toMatchObject({ kind: 'passing', code: 'code 777' });
});
