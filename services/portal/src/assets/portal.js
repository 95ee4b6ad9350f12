// Pages work without this file; with it texts can be copied and times are also those of the reader.

// On a telephone the list of pages is a line that scrolls.
document.querySelector('.side [aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' });

/** Lets a button copy what it has. */
export function offerCopy(button) {
  button.hidden = false;
  button.addEventListener('click', async () => {
    const label = button.firstChild;
    try {
      await navigator.clipboard.writeText(button.dataset.copy);
      label.textContent = 'Copied';
    } catch {
      label.textContent = 'Select it and copy it by hand';
    }
    setTimeout(() => {
      label.textContent = 'Copy';
    }, 2000);
  });
}

for (const button of document.querySelectorAll('button.copy')) offerCopy(button);

export const toOwnTime = (instant) =>
  new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' }).format(instant);

for (const element of document.querySelectorAll('time[datetime]')) {
  const instant = new Date(element.dateTime);
  if (Number.isNaN(instant.getTime())) continue;
  const own = document.createElement('span');
  own.textContent = toOwnTime(instant);
  const utc = document.createElement('span');
  utc.className = 'quiet';
  utc.textContent = ` (${element.textContent})`;
  element.replaceChildren(own, utc);
}
