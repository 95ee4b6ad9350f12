import { EXIT } from '../command-table.mjs';
import type { StackPaths } from '../paths.ts';
import { readStackFile } from '../stack-file.ts';
import { findSupervisor } from '../supervisor.ts';
import { simulate } from './run.ts';
import { firstLinkOf, reportLink } from './start.ts';
import { up } from './up.ts';

/** A minute of a small game, with broken messages and erasures, so that every page has something to show. */
const GAME = ['--players', '40', '--minutes', '1', '--rate', '40', '--broken', '0.05'];
const CHAIN = ['--chain', '--activities', '500', '--rate', '100'];

/** `npm run demo-portal`: starts a stack with traffic, and prints where to look at it. */
export async function demoPortal(places: StackPaths): Promise<number> {
  const wasRunning = findSupervisor(places) !== null;
  if (!wasRunning) {
    const code = await up(places);
    if (code !== EXIT.ok) return code;
  }
  for (const args of [GAME, CHAIN]) {
    const code = await simulate(places, args);
    if (code !== EXIT.ok) return code;
  }
  const file = readStackFile(places);
  console.log(`\n  The portal: ${file?.portal}   project demo, environment development\n`);
  // A stack that was just started has printed its link already, and each link works once.
  if (wasRunning) reportLink(await firstLinkOf(places, file));
  return EXIT.ok;
}
