import { expect, test } from 'vitest';
import { PNG } from '../../local/walk/png.ts';
import { type ConsoleHarness, dropFile, holdFirst, lookAt } from '../console.ts';
import { somebody } from '../world.ts';

const photo = (bytes: Buffer = PNG) => ({ name: 'photo.png', mimeType: 'image/png', buffer: bytes });

/** Files of a model whose employees have a photo. */
export function testFiles({ product, open }: ConsoleHarness): void {
  async function openRow(role = 'hr') {
    const body = somebody({ department: 'Sales' });
    const hr = product.as('hr');
    expect((await hr('POST', '/api/employees', { body })).status).toBe(201);
    const path = `/api/employees/Sales/${body.employeeId}`;
    const page = await open(`#/entities/employees/rows/Sales/${body.employeeId}`, role);
    return { page, path, hr, files: page.getByRole('region', { name: 'Files' }) };
  }

  test('uploads a file directly to storage, shows it, replaces and deletes it', async () => {
    const { page, path, hr, files } = await openRow();
    await files.getByText('No file.').waitFor();
    await lookAt(page, 'row-without-file');
    await files.getByLabel('Upload photo').setInputFiles(photo());
    await files.getByText('Uploaded directly to storage.').waitFor();
    expect((await hr('GET', path)).body.photo).toMatchObject({ type: 'image/png', bytes: PNG.length });
    const image = files.getByRole('img', { name: /photo/ });
    await image.waitFor();
    expect(await image.evaluate((element) => (element as unknown as { naturalWidth: number }).naturalWidth)).toBe(1);
    await files.scrollIntoViewIfNeeded();
    await lookAt(page, 'files');
    const larger = Buffer.concat([PNG, Buffer.alloc(500_000)]);
    await files.getByLabel('Replace photo').setInputFiles(photo(larger));
    await files.getByText('image/png, 500.1 kB').waitFor();
    await files.getByRole('button', { name: 'Delete photo' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete the file' }).click();
    await files.getByText('No file.').waitFor();
    expect((await hr('GET', path)).body).not.toHaveProperty('photo');
  });

  test('says what is accepted before a file is sent', async () => {
    const { page, path, hr, files } = await openRow();
    await files.getByLabel('Upload photo').setInputFiles({ name: 'a.gif', mimeType: 'image/gif', buffer: PNG });
    await files.getByText('got image/gif').waitFor();
    await files.getByLabel('Upload photo').setInputFiles(photo(Buffer.alloc(5_000_001)));
    await files.getByText('The file has 5,000,001 bytes; at most 5 MB are accepted.').waitFor();
    await files.getByText('The file was not uploaded').waitFor();
    await lookAt(page, 'file-rejected');
    expect((await hr('GET', path)).body).not.toHaveProperty('photo');
  });

  test('shows files to a role that cannot write them, without a way to change them', async () => {
    const { files } = await openRow('reader');
    await files.getByText('No file.').waitFor();
    expect(await files.getByLabel(/photo/).count()).toBe(0);
  });

  test('uploads a file that is dropped, and names it in lists', async () => {
    const { page, path, hr, files } = await openRow();
    const { employeeId } = (await hr('GET', path)).body;
    await dropFile(files.locator('.drop-zone'), photo());
    await files.getByText('Uploaded directly to storage.').waitFor();
    await page.goto(new URL('/console/#/entities/employees/rows?key.department=Sales', product.url).href);
    const row = page.getByRole('row').filter({ hasText: employeeId });
    await row.getByRole('cell', { name: `image/png, ${PNG.length} bytes` }).waitFor();
  });

  test('shows an SVG file without its scripts, and saves it as a file that no browser executes', async () => {
    const { page, files } = await openRow();
    const script = 'document.title = globalThis.parent.document.title = "executed"';
    const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="40" height="30" onload='${script}'><rect width="40" height="30" fill="teal"/><script>${script}</script></svg>`;
    const type = 'image/svg+xml';
    await page.route(/\/api\/employees\/Sales\/\w+$/, async (route) => {
      const response = await route.fetch();
      return route.fulfill({ response, json: { ...(await response.json()), photo: { type, bytes: svg.length } } });
    });
    await page.route(/\/api\/employees\/Sales\/\w+\/photo/, (route) =>
      route.fulfill({ contentType: type, headers: { etag: '"1"' }, body: svg }),
    );
    // The policy lets no script read a blob URL.
    await page.addInitScript(`{
      const create = URL.createObjectURL;
      globalThis.blobTypes = {};
      URL.createObjectURL = (blob) => {
        const url = create(blob);
        blobTypes[url] = blob.type;
        return url;
      };
    }`);
    await page.reload();
    const image = files.getByRole('img', { name: /photo/ });
    await image.waitFor();
    const width = () => image.evaluate((element) => (element as unknown as { naturalWidth: number }).naturalWidth);
    await expect.poll(width).toBe(40);
    await lookAt(page, 'file-svg');
    expect(await page.title()).not.toContain('executed');
    const saved = await files.getByRole('link', { name: 'Save the file' }).getAttribute('href');
    expect(await page.evaluate(`blobTypes[${JSON.stringify(saved)}]`)).toBe('application/octet-stream');
  });

  test('cancels an upload, stores nothing, and uploads the same file again', async () => {
    const { page, path, hr, files } = await openRow();
    const { held, release } = await holdFirst(page, (request) => request.method() === 'PUT');
    await files.getByLabel('Upload photo').setInputFiles(photo());
    await held;
    await files.getByRole('progressbar').waitFor();
    await lookAt(page, 'file-uploading');
    await files.getByRole('button', { name: 'Cancel' }).click();
    await files.getByLabel('Upload photo').waitFor();
    await release();
    expect((await hr('GET', path)).body).not.toHaveProperty('photo');
    await files.getByLabel('Upload photo').setInputFiles(photo());
    await files.getByText('Uploaded directly to storage.').waitFor();
    expect((await hr('GET', path)).body.photo).toMatchObject({ bytes: PNG.length });
  });
}
