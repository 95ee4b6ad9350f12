/** Preloaded into a service. On SIGUSR2, shifts `Date` by the milliseconds in the file PLAYLINE_TEST_CLOCK. */
import { readFileSync, writeFileSync } from 'node:fs';

const file = process.env.PLAYLINE_TEST_CLOCK ?? '';
const RealDate = Date;
let shiftMs = 0;

class ShiftedDate extends RealDate {
  constructor(...given: [] | [number | string | Date]) {
    if (given.length === 0) super(RealDate.now() + shiftMs);
    // The services never pass more than one argument.
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
