import type { KeyLog } from './key-log.ts';
import type { KeyStore, KeyView } from './key-store.ts';
import { rebuildInTurn } from './rebuild.ts';
import { ViewFault } from './records/view-faults.ts';

/**
 * A key store whose changes are in the log before they are in the view. A view that has lost its keys is rebuilt before
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
    // The guarantee: whoever sees a change in the view finds it in the log, so the log can always give the view back.
    await log.append([ended, added].filter((record) => record !== null));
    if (await intoView(view.replace(ended, added))) return true;
    // Only somebody who waited for no turn can have won between the look and the write: our key must not live.
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
