/**
 * Loaded into a process before its own code: on SIGUSR2 its wall clock goes on from the shift that stands in the file
 * that PLAYLINE_TEST_CLOCK names. `performance.now()` and timers are untouched, as when an operator sets a machine's
 * clock.
 */
import { readFileSync, writeFileSync } from 'node:fs';

const file = process.env.PLAYLINE_TEST_CLOCK ?? '';
const RealDate = Date;
let shiftMs = 0;

class ShiftedDate extends RealDate {
  constructor(...given: [] | [number | string | Date]) {
    if (given.length === 0) super(RealDate.now() + shiftMs);
    // More than one part is never given by us: the type of the base class has each of its forms.
    else super(...given);
  }
  static override now(): number {
    return RealDate.now() + shiftMs;
  }
}

globalThis.Date = ShiftedDate as DateConstructor;
process.on('SIGUSR2', () => {
  shiftMs = Number(readFileSync(file, 'utf8'));
  writeFileSync(`${file}.set`, String(shiftMs));
});
