import { findOrphans } from '../children.ts';
import { EXIT } from '../command-table.mjs';
import { examine } from '../doctor.ts';
import type { Places } from '../places.ts';
import { judge, readStatus } from '../status.ts';
import { findSupervisor } from '../supervisor.ts';

const SIGNS = { good: 'ok  ', warning: 'warn', bad: 'BAD ' } as const;

/**
 * `npm run doctor`: prints every finding and how to mend it. Ends with 1 when one would keep the stack from starting or
 * from serving.
 */
export async function doctor(places: Places): Promise<number> {
  const supervisor = findSupervisor(places);
  const orphans = supervisor === null ? findOrphans(places).map(({ name }) => name) : [];
  const isRunning = supervisor !== null || orphans.length > 0;
  const findings = await examine(places, { environment: process.env, isRunning });
  for (const { level, what, mend } of findings)
    console.log(`${SIGNS[level]}  ${what}${mend === undefined ? '' : `\n      mend: ${mend}`}`);
  const isMachineWell = !findings.some((finding) => finding.level === 'bad');
  if (orphans.length > 0) {
    console.log(judge(null, orphans).sentence);
    return EXIT.failed;
  }
  if (supervisor === null) {
    console.log('the stack is not running');
    return isMachineWell ? EXIT.ok : EXIT.failed;
  }
  const statuses = (await readStatus(places)) ?? [];
  const { isWell, sentence, hint } = judge(statuses);
  console.log(`the stack is running (supervisor ${supervisor.pid}): ${sentence}${hint}`);
  for (const { mend } of statuses) if (mend !== null) console.log(`      mend: ${mend}`);
  return isMachineWell && isWell ? EXIT.ok : EXIT.failed;
}
