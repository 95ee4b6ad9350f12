import { examine } from '../doctor.ts';
import type { Places } from '../places.ts';
import { findSupervisor } from '../supervisor.ts';

const SIGNS = { good: 'ok  ', warning: 'warn', bad: 'BAD ' } as const;

/** `npm run doctor`: every finding and how to mend it; ends with 1 when something would keep the stack from starting. */
export async function doctor(places: Places): Promise<number> {
  const supervisor = findSupervisor(places);
  const findings = await examine(places, { environment: process.env, isRunning: supervisor !== null });
  for (const { level, what, mend } of findings)
    console.log(`${SIGNS[level]}  ${what}${mend === undefined ? '' : `\n      mend: ${mend}`}`);
  console.log(supervisor === null ? 'the stack is not running' : `the stack is running (supervisor ${supervisor.pid})`);
  return findings.some((finding) => finding.level === 'bad') ? 1 : 0;
}
