import { EXIT } from '../command-table.mjs';
import type { StackPaths } from '../paths.ts';
import { readStackFile } from '../stack-file.ts';
import { findSupervisor } from '../supervisor.ts';
import { simulate } from './run.ts';
import { firstLinkOf, reportLink } from './start.ts';
import { up } from './up.ts';

/** A minute of a small game, with broken messages and erasures, so that every page has content. */
const GAME = ['--players', '40', '--minutes', '1', '--rate', '40', '--broken', '0.05'];
const CHAIN = ['--chain', '--activities', '500', '--rate', '100'];

/** Starts a stack with traffic, and prints the portal's address. */
export async function demoPortal(paths: StackPaths): Promise<number> {
  const wasRunning = findSupervisor(paths) !== null;
  if (!wasRunning) {
    const code = await up(paths);
    if (code !== EXIT.ok) return code;
  }
  for (const args of [GAME, CHAIN]) {
    const code = await simulate(paths, args);
    if (code !== EXIT.ok) return code;
  }
  const file = readStackFile(paths);
  console.log(`\n  The portal: ${file?.portal}   project demo, environment development\n`);
  // A stack that was just started has printed its link, and each link works once.
  if (wasRunning) reportLink(await firstLinkOf(paths, file));
  return EXIT.ok;
}
