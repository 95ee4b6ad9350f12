import { SERVICES, type ServiceEntry } from '@playline/infra/local';
import { expect, it } from 'vitest';
import { OFFSET_GROUPS } from '../services/operator/src/commands/offsets.ts';

/** A second group of the linker, which reads parked facts. */
const PARKED = 'identity-linker-parked';

it('the command about offsets lists the group of every service that reads a topic, and no other', () => {
  const services: readonly ServiceEntry[] = SERVICES;
  const groups = services.flatMap(({ name, reads, audits }) => [
    ...(reads === undefined ? [] : [name]),
    ...(audits === undefined ? [] : [`${name}-audit`]),
  ]);
  expect([...OFFSET_GROUPS].sort()).toEqual([...groups, PARKED].sort());
});
