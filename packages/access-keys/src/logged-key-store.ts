import type { KeyLog } from './key-log.ts';
import type { KeyStore, KeyView } from './key-store.ts';
import { rebuildInTurn } from './rebuild.ts';
import { ViewFault } from './records/view-faults.ts';

/**
 * A key store that writes each change to the log before the view. If the view has lost its keys, it is rebuilt before
 * anything is decided by it.
 */
export function createLoggedKeyStore(view: KeyView, log: KeyLog): KeyStore {
  const completeInTurn = async () => {
    if (!(await view.isComplete())) await rebuildInTurn(view, log);
  };
  const complete = async () => {
    if (!(await view.isComplete())) await view.exclusive(completeInTurn);
  };
  const replaceInTurn: KeyStore['replace'] = async (ended, added) => {
    const subject = added ?? ended;
    if (subject === null) return true;
    await completeInTurn();
    const live = await view.findLive(subject.environmentId, subject.kind);
    if (live?.hash !== ended?.hash) return false;
    // The guarantee: every change that the view shows is in the log, so the view can always be rebuilt from it.
    await log.append([ended, added].filter((record) => record !== null));
    if (await intoView(view.replace(ended, added))) return true;
    // Another command decided first without waiting for its turn. Our key must not become live.
    if (added !== null) await log.append([{ ...added, revokedAt: Date.now() }]);
    return false;
  };
  const amendInTurn: KeyStore['amend'] = async (changed) => {
    await completeInTurn();
    const live = await view.findLive(changed.environmentId, changed.kind);
    if (live?.hash !== changed.hash) return false;
    await log.append([changed]);
    return intoView(view.amend(changed));
  };
  return {
    find: view.find,
    findLive: async (environmentId, kind) => {
      await complete();
      return view.findLive(environmentId, kind);
    },
    list: async (projectId) => {
      await complete();
      return view.list(projectId);
    },
    replace: (ended, added) => view.exclusive(() => replaceInTurn(ended, added)),
    amend: (changed) => view.exclusive(() => amendInTurn(changed)),
  };
}

async function intoView(write: Promise<boolean>): Promise<boolean> {
  try {
    return await write;
  } catch (cause) {
    throw new ViewFault('the log has the change and the view may not have it: rebuild the view', { cause });
  }
}
