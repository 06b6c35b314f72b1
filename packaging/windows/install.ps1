<#
.SYNOPSIS
    Installs tillbridge as a Windows service, from this folder and without the internet.

.DESCRIPTION
    Run it from the unpacked bundle, in a PowerShell "as administrator". Running it again updates:
    the configuration and the data stay, and the service is started again.

    The program goes to "C:\Program Files\tillbridge", its configuration and data to
    "C:\ProgramData\tillbridge". The service runs as its own account, "NT SERVICE\tillbridge", which
    may read and write the data folder and the folders of the till named with -PosFolder.

    Nothing listens to the network: the page and the receiver are on 127.0.0.1, so that the firewall
    asks nothing. How orders reach the receiver is in docs\reach.md.

.PARAMETER Python
    A python.exe of version 3.11, 3.12 or 3.13 (64 bit). Without it the newest that is installed is taken.

.PARAMETER PosFolder
    Folders of the till: the service's account may read and write them.

.EXAMPLE
    .\install.ps1 -PosFolder 'C:\POS\Export', 'C:\POS\Orders'
#>
[CmdletBinding()]
param(
    [string] $Python = '',
    [string] $ProgramFolder = (Join-Path $env:ProgramFiles 'tillbridge'),
    [string] $DataFolder = (Join-Path $env:ProgramData 'tillbridge'),
    [string[]] $PosFolder = @(),
    [string] $ServiceName = 'tillbridge'
)

Set-StrictMode -Version Latest
$ErrorActionPreference = 'Stop'
$Here = $PSScriptRoot
$Versions = '3.13', '3.12', '3.11'

function Stop-WithAdvice([string] $What, [string] $Fix) {
    Write-Host $What -ForegroundColor Red
    Write-Host $Fix
    exit 1
}

function Invoke-Program([string] $File, [string[]] $Arguments, [string] $Doing) {
    & $File @Arguments
    if ($LASTEXITCODE -ne 0) {
        Stop-WithAdvice "$Doing failed (exit code $LASTEXITCODE)." 'The lines above say why. Nothing that ran before was removed; run this again after mending it.'
    }
}

function Find-Python {
    if ($Python) {
        if (-not (Test-Path -LiteralPath $Python)) {
            Stop-WithAdvice "There is no $Python." 'Name a python.exe with -Python.'
        }
        return $Python
    }
    foreach ($version in $Versions) {
        foreach ($hive in 'HKLM:', 'HKCU:') {
            $key = "$hive\Software\Python\PythonCore\$version\InstallPath"
            if (Test-Path -LiteralPath $key) {
                $found = (Get-ItemProperty -LiteralPath $key).ExecutablePath
                if ($found -and (Test-Path -LiteralPath $found)) { return $found }
            }
        }
    }
    Stop-WithAdvice 'No Python 3.11, 3.12 or 3.13 is installed.' 'Install one from python.org for all users (64 bit), or name a python.exe with -Python.'
}

$principal = [Security.Principal.WindowsPrincipal] [Security.Principal.WindowsIdentity]::GetCurrent()
if (-not $principal.IsInRole([Security.Principal.WindowsBuiltInRole]::Administrator)) {
    Stop-WithAdvice 'This needs an administrator.' 'Open PowerShell with "Run as administrator" and run it again.'
}

$base = Find-Python
$told = & $base -c 'import struct, sys; print("%d.%d %d" % (*sys.version_info[:2], struct.calcsize("P") * 8))'
$version, $bits = "$told".Split(' ')
if ($Versions -notcontains $version -or $bits -ne '64') {
    Stop-WithAdvice "$base is Python $version with $bits bits." 'Python 3.11, 3.12 or 3.13 with 64 bits is needed.'
}
if ($base -like "$env:USERPROFILE\*") {
    Stop-WithAdvice "$base belongs to one user." 'The service runs as another account and cannot read it: install Python for all users, or name another with -Python.'
}

Write-Host "Installing with Python $version ($base) ..."
# A new folder beside the old one, while the bridge goes on: what fails here leaves it as it was, and running.
$fresh = "$ProgramFolder.new"
$old = "$ProgramFolder.old"
foreach ($each in $fresh, $old) {
    if (Test-Path -LiteralPath $each) { Remove-Item -LiteralPath $each -Recurse -Force }
}
Invoke-Program $base @('-m', 'venv', $fresh) 'Making the environment'
$pip = @('-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--no-index', '--find-links', (Join-Path $Here 'wheelhouse'))
Invoke-Program (Join-Path $fresh 'Scripts\python.exe') ($pip + @('--require-hashes', '-r', (Join-Path $Here 'requirements.txt'))) 'Installing the libraries'
Invoke-Program (Join-Path $fresh 'Scripts\python.exe') ($pip + @('--no-deps') + @(Get-ChildItem -LiteralPath (Join-Path $Here 'program') -Filter '*.whl' | ForEach-Object { $_.FullName })) 'Installing the program'
$running = Get-Service -Name $ServiceName -ErrorAction SilentlyContinue
if ($running -and $running.Status -ne 'Stopped') {
    Write-Host 'Stopping the bridge; orders that arrive meanwhile are delivered again ...'
    Stop-Service -Name $ServiceName
    (Get-Service -Name $ServiceName).WaitForStatus('Stopped', [TimeSpan]::FromSeconds(30))
}
if (Test-Path -LiteralPath $ProgramFolder) { Move-Item -LiteralPath $ProgramFolder -Destination $old }
Move-Item -LiteralPath $fresh -Destination $ProgramFolder
$programPython = Join-Path $ProgramFolder 'Scripts\python.exe'
# Its small starter programs hold the path they were made at; `tillbridge.cmd` finds its own.
Set-Content -LiteralPath (Join-Path $ProgramFolder 'tillbridge.cmd') -Encoding Ascii -Value @(
    '@echo off'
    'setlocal'
    'if not defined TILLBRIDGE_CONFIG set "TILLBRIDGE_CONFIG=%ProgramData%\tillbridge\bridge.toml"'
    '"%~dp0Scripts\python.exe" -m tillbridge %*'
)

New-Item -ItemType Directory -Force -Path $DataFolder | Out-Null
$config = Join-Path $DataFolder 'bridge.toml'
$isNew = -not (Test-Path -LiteralPath $config)
if ($isNew) {
    Copy-Item -LiteralPath (Join-Path $Here 'bridge.toml') -Destination $config
}

if (-not $running) {
    New-Service -Name $ServiceName -DisplayName 'tillbridge' -StartupType Automatic `
        -Description "Bridge between the till and its online orders. Its page: http://127.0.0.1:8089" `
        -BinaryPathName "`"$programPython`" -m tillbridge.windows --name $ServiceName --config `"$config`"" | Out-Null
}
# An account of its own, without a password and without rights but these.
Invoke-Program 'sc.exe' @('config', $ServiceName, 'obj=', "NT SERVICE\$ServiceName", 'start=', 'delayed-auto') 'Choosing the account'
Invoke-Program 'sc.exe' @('failure', $ServiceName, 'reset=', '86400', 'actions=', 'restart/2000/restart/15000/restart/60000') 'Setting the recovery actions'
Invoke-Program 'sc.exe' @('failureflag', $ServiceName, '1') 'Setting the recovery actions'

# Whose words the event log shows: the service's account may not enter itself.
$messages = Join-Path $ProgramFolder 'Lib\site-packages\win32\servicemanager.pyd'
$source = "HKLM\SYSTEM\CurrentControlSet\Services\EventLog\Application\$ServiceName"
Invoke-Program 'reg.exe' @('add', $source, '/v', 'EventMessageFile', '/t', 'REG_EXPAND_SZ', '/d', $messages, '/f') 'Entering the source of the event log'
Invoke-Program 'reg.exe' @('add', $source, '/v', 'TypesSupported', '/t', 'REG_DWORD', '/d', '7', '/f') 'Entering the source of the event log'

# By numbers, since names of groups differ between languages: S-1-5-18 is SYSTEM, S-1-5-32-544 the administrators.
Invoke-Program 'icacls.exe' @($DataFolder, '/inheritance:r', '/grant:r', '*S-1-5-18:(OI)(CI)F', '*S-1-5-32-544:(OI)(CI)F', "NT SERVICE\${ServiceName}:(OI)(CI)M", '/Q') 'Closing the data folder'
foreach ($folder in $PosFolder) {
    if (-not (Test-Path -LiteralPath $folder)) {
        Stop-WithAdvice "There is no folder $folder." 'Name the folders that the till exports to and reads orders from.'
    }
    Invoke-Program 'icacls.exe' @($folder, '/grant', "NT SERVICE\${ServiceName}:(OI)(CI)M", '/Q') "Opening $folder"
}
if (Test-Path -LiteralPath $old) { Remove-Item -LiteralPath $old -Recurse -Force -ErrorAction SilentlyContinue }

if ($isNew) {
    Write-Host ''
    Write-Host "Installed. Now edit $config, and then:"
    Write-Host "    & '$ProgramFolder\tillbridge.cmd' config check"
    Write-Host "    Start-Service $ServiceName"
    Write-Host "    & '$ProgramFolder\tillbridge.cmd' connect main"
}
else {
    Start-Service -Name $ServiceName
    & (Join-Path $ProgramFolder 'tillbridge.cmd') status
    Write-Host 'Updated.'
}
