import { Option } from '@commander-js/extra-typings';
import { VERIFICATION_STATUSES } from '@playline/contracts';
import { GROUPS } from '@playline/runtime';
import type { ChainContext } from '../chain/chain-job.ts';
import { backfill, verify } from '../chain/reread.ts';
import { showStatus } from '../chain/status.ts';
import { refreshToken, setVerification } from '../chain/tokens.ts';
import { type CreateCommand, command, endWith, jsonCommand, wholeNumberFrom } from '../command.ts';

const ABOUT = `
Requires CHAIN_NODES, which lists the chains and their nodes, or a local stack.

Exit codes: 0 success, 1 findings or interrupted, 2 invalid arguments, 3 node or store not responding.`;

const STATUS = `
For each chain, shows the latest, the last final and the last indexed block, the indexing rate, the estimated remaining
time, and the latest block of each node. Exits with code 3 if a chain has no responding node.`;

const VERIFY = `
Reports activities that are missing from the history or differ from the chain, and event logs that are not in the
history because they exceed the limit per contract and block. By default, all indexed blocks are verified.`;

const BACKFILL = `
Publishes activities that are missing from the history or differ from the chain. Safe to repeat. Fails for blocks that
have not been indexed yet.`;

const chainCommand = (name: string, description: string) =>
  jsonCommand(name, description).requiredOption('--chain <name>', 'chain name');
const address = () => new Option('--address <address>', 'token contract address: 0x…').makeOptionMandatory();
const block = <const F extends string>(flags: F, description: string) =>
  new Option(flags, description).argParser(wholeNumberFrom(0, Number.MAX_SAFE_INTEGER));

export const createChainCommand =
  (context: ChainContext): CreateCommand =>
  (terminal) => {
    const job = { context, terminal };
    return command('chain', 'show indexing progress, verify and repair the activity history')
      .addCommand(
        jsonCommand('status', 'show the indexing progress of each chain')
          .option('--chain <name>', 'show only this chain')
          .addHelpText('after', STATUS)
          .action(async (options) => endWith(await showStatus(job, options))),
      )
      .addCommand(
        chainCommand('verify', 'compare the activity history with the chain')
          .addOption(block('--from <block>', 'first block (default: the first block of the chain)'))
          .addOption(block('--to <block>', 'last block (default: the last indexed block)'))
          .addHelpText('after', VERIFY)
          .action(async (options) => endWith(await verify(job, options))),
      )
      .addCommand(
        chainCommand('backfill', 'publish activities that are missing from the history')
          .addOption(block('--from <block>', 'first block').makeOptionMandatory())
          .addOption(block('--to <block>', 'last block').makeOptionMandatory())
          .option('--writer-group <name>', 'consumer group of the activity writer', GROUPS.activityWriter)
          .addHelpText('after', BACKFILL)
          .action(async (options) => endWith(await backfill(job, options))),
      )
      .addCommand(
        chainCommand('refresh-token', 'update the name, symbol and decimals of a token from its contract')
          .addOption(address())
          .action((options) => refreshToken(job, options)),
      )
      .addCommand(
        chainCommand('verification', 'set the verification status of a token')
          .addOption(address())
          .addOption(
            new Option('--status <status>', 'verification status').choices(VERIFICATION_STATUSES).makeOptionMandatory(),
          )
          .action((options) => setVerification(job, options)),
      )
      .addHelpText('after', ABOUT);
  };
