import { SERVICES, type ServiceEntry } from '@playline/infra/local';
import { expect, it } from 'vitest';
import { OFFSET_GROUPS } from '../services/operator/src/commands/offsets.ts';

const PARKED = 'identity-linker-parked';

it('the offsets command lists exactly the consumer groups of the services that read topics', () => {
  const services: readonly ServiceEntry[] = SERVICES;
  const groups = services.flatMap(({ name, reads, audits }) => [
    ...(reads === undefined ? [] : [name]),
    ...(audits === undefined ? [] : [`${name}-audit`]),
  ]);
  expect([...OFFSET_GROUPS].sort()).toEqual([...groups, PARKED].sort());
});
