import { Option } from '@commander-js/extra-typings';
import { VERIFICATION_STATUSES } from '@playline/contracts';
import { GROUPS } from '@playline/runtime';
import type { ChainContext } from '../chain/chain-job.ts';
import { backfill, verify } from '../chain/reread.ts';
import { showStatus } from '../chain/status.ts';
import { refreshToken, setVerification } from '../chain/tokens.ts';
import { type CreateCommand, command, endWith, jsonCommand, wholeNumberFrom } from '../command.ts';

const ABOUT = `
Uses the chains and nodes in CHAIN_NODES, or those of the local stack.

Exit codes: 0 success, 1 finding or interruption, 2 invalid arguments, 3 a node or store does not respond.`;

const STATUS = `
Shows the latest, final and indexed block, the pace of the indexer, the remaining time, and the latest block of each node.
If no node of a chain responds, the exit code is 3.`;

const VERIFY = `
Reports activities that the history lacks or stores with different contents, and logs that claim more tokens than they
move. Reads all indexed blocks, unless --from and --to select fewer.`;

const BACKFILL = `
Publishes only what the history lacks or stores with different contents. Safe to repeat. Refuses blocks that are not yet
indexed.`;

const onChain = (name: string, description: string) =>
  jsonCommand(name, description).requiredOption('--chain <name>', 'name of the chain');
const address = () => new Option('--address <address>', 'contract of the token: 0x…').makeOptionMandatory();
const block = <const F extends string>(flags: F, description: string) =>
  new Option(flags, description).argParser(wholeNumberFrom(0, Number.MAX_SAFE_INTEGER));

export const createChainCommand =
  (context: ChainContext): CreateCommand =>
  (terminal) => {
    const job = { context, terminal };
    return command('chain', 'show how far chains are indexed, and compare the history with the chains')
      .addCommand(
        jsonCommand('status', 'show how far each chain is indexed')
          .option('--chain <name>', 'show only this chain')
          .addHelpText('after', STATUS)
          .action(async (options) => endWith(await showStatus(job, options))),
      )
      .addCommand(
        onChain('verify', 'read blocks again and compare them with the history')
          .addOption(block('--from <block>', 'first block'))
          .addOption(block('--to <block>', 'last block'))
          .addHelpText('after', VERIFY)
          .action(async (options) => endWith(await verify(job, options))),
      )
      .addCommand(
        onChain('backfill', 'read blocks again and publish what the history lacks')
          .addOption(block('--from <block>', 'first block').makeOptionMandatory())
          .addOption(block('--to <block>', 'last block').makeOptionMandatory())
          .option('--writer-group <name>', 'consumer group of the activity writer', GROUPS.activityWriter)
          .addHelpText('after', BACKFILL)
          .action(async (options) => endWith(await backfill(job, options))),
      )
      .addCommand(
        onChain('refresh-token', 'read name, symbol and decimals of a token again, and publish changes')
          .addOption(address())
          .action((options) => refreshToken(job, options)),
      )
      .addCommand(
        onChain('verification', 'set the verification status of a token')
          .addOption(address())
          .addOption(
            new Option('--status <status>', 'the new status').choices(VERIFICATION_STATUSES).makeOptionMandatory(),
          )
          .action((options) => setVerification(job, options)),
      )
      .addHelpText('after', ABOUT);
  };
