import fc from 'fast-check';
import type { FactOptions, Name } from './scenario.ts';

export const NAMES: readonly Name[] = [
  ...['anonymous:a', 'anonymous:b', 'anonymous:c', 'steam:x', 'steam:y', 'epic:x', 'passport:p', 'passport:q'],
  ...['untyped:x', 'untyped:y', 'custom:k', 'untyped:null'],
] as Name[];

const name = fc.constantFrom(...NAMES);
/** Delay of a message, and time between event and receipt. */
const lateness = fc.oneof(
  { weight: 3, arbitrary: fc.constant({ delayMs: 0, eventAgeMs: 0 }) },
  { weight: 2, arbitrary: fc.record({ delayMs: fc.nat(80), eventAgeMs: fc.nat(60) }) },
);
export type LinkRequest = {
  link: FactOptions['link'];
  from: Name;
  to: Name;
  extra: Name[];
  delayMs: number;
  eventAgeMs: number;
};
const linkRequest: fc.Arbitrary<LinkRequest> = fc
  .record({
    link: fc.constantFrom<FactOptions['link'][]>('alias', 'alias', 'identify', 'identify', 'unlink'),
    from: name,
    to: name,
    extra: fc.array(name, { maxLength: 2 }),
    lateness,
  })
  .map(({ lateness: { delayMs, eventAgeMs }, ...rest }) => ({ ...rest, delayMs, eventAgeMs }))
  .filter(({ from, to, link }) => link === 'unlink' || from !== to);

export type Command =
  | { kind: 'facts'; requests: LinkRequest[] }
  /** Repeats the last call, as if its response had been lost. */
  | { kind: 'repeat' }
  /** Appends a copy of an unlink, which can happen to a parked unlink. */
  | { kind: 'copy'; back: number }
  | { kind: 'erase'; name: Name; crash: boolean }
  /** `round` republishes parked facts at the end of the log. */
  | { kind: 'hold' | 'release'; name: Name }
  | { kind: 'round' }
  /** Redis loses all data while some decisions are unpublished and some facts are uncommitted. */
  | { kind: 'crash'; unpublished: number; uncommitted: number }
  /**
   * Redis loses the writes of the last commands. Holds that those commands released are restored, and are
   * released before or after the linker reapplies the facts.
   */
  | { kind: 'loss'; back: number; releasedFirst: boolean };
export const command: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant('facts'),
      requests: fc.array(linkRequest, { minLength: 1, maxLength: 6 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('repeat') }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('copy'), back: fc.nat(3) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('erase'), name, crash: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom('hold', 'release'), name }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('round') }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('crash'), unpublished: fc.nat(3), uncommitted: fc.nat(12) }) },
);

/** Like `command`, but including data losses. */
export const commandOrLoss: fc.Arbitrary<Command> = fc.oneof(
  { weight: 4, arbitrary: command },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('loss'), back: fc.nat(4), releasedFirst: fc.boolean() }) },
);
