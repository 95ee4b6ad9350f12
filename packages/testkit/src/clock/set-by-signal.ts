/** Preloaded into a service. On SIGUSR2, shifts `Date` by the milliseconds in the PLAYLINE_TEST_CLOCK file. */
import { readFileSync, writeFileSync } from 'node:fs';

const file = process.env.PLAYLINE_TEST_CLOCK ?? '';
const RealDate = Date;
let shiftMs = 0;

class ShiftedDate extends RealDate {
  constructor(...args: [] | [number | string | Date]) {
    if (args.length === 0) super(RealDate.now() + shiftMs);
    // The services never pass more than one argument.
    else super(...args);
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
